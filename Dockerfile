# syntax=docker/dockerfile:1
# One image for every role: the command is the role. docs/operations.md, "Deploying", says what it holds.

FROM rust:1.95.0-bookworm AS build
WORKDIR /src
# .dockerignore excludes all files that cargo does not need.
COPY . .
# The caches stay on the build machine, so that cargo compiles only changed crates again.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    CARGO_PROFILE_RELEASE_STRIP=debuginfo cargo build --release --locked --package holdfast \
    && cp target/release/holdfast /usr/local/bin/holdfast

# The release of the builder, so that the C library is the same.
FROM debian:12.12-slim
# Debian removes old versions from its archive, so a pinned version would soon fail to build.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin holdfast \
    && install --directory --owner=holdfast --group=holdfast --mode=0700 /var/lib/holdfast
COPY --from=build /usr/local/bin/holdfast /usr/local/bin/holdfast
COPY LICENSE THIRD-PARTY-NOTICES.txt /usr/share/doc/holdfast/
# By number, so that an orchestrator can see that it is not root.
USER 10001:10001
WORKDIR /var/lib/holdfast
ENV HOLDFAST_ADDR=0.0.0.0:8080 \
    HOLDFAST_METRICS_ADDR=0.0.0.0:9090 \
    HOLDFAST_DATA_DIR=/var/lib/holdfast
EXPOSE 8080
# The first check succeeds for an API, and the second one for a worker. The container runs no other process.
HEALTHCHECK --interval=5s --timeout=8s --start-period=60s \
    CMD ["sh", "-c", "holdfast healthcheck api || holdfast healthcheck worker"]
ENTRYPOINT ["holdfast"]
