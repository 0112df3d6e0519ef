//! Routes with descriptions for `/openapi.json`. A start makes their handlers only, because the descriptions take memory and time,
//! and most processes never need them.

use std::sync::Arc;

use axum::{Extension, Router, extract::DefaultBodyLimit, handler::Handler, routing::MethodRouter};
use utoipa::openapi::{HttpMethod, OpenApi};
use utoipa_axum::{
    PathItemExt,
    router::{OpenApiRouter, UtoipaMethodRouter},
};

use crate::{app::App, extract::BodyLimit};

/// Routes, each with the function that describes it.
#[derive(Default)]
pub struct DescribedRoutes {
    router: Router<Arc<App>>,
    descriptions: Vec<fn() -> UtoipaMethodRouter<Arc<App>>>,
}

/// The handlers of one path. `routes!` makes it.
pub struct PathHandlers {
    pub path: String,
    pub methods: MethodRouter<Arc<App>>,
    pub describe: fn() -> UtoipaMethodRouter<Arc<App>>,
}

/// Returns the handlers of a path, whose attributes name the path and the methods.
macro_rules! routes {
    ($first:path $(, $more:path)* $(,)?) => {
        $crate::routes::described::PathHandlers {
            path: utoipa_axum::paste! { utoipa_axum::routes!(@path [path()] of $first) },
            methods: {
                let methods = axum::routing::MethodRouter::new();
                let of_first = utoipa_axum::paste! { utoipa_axum::routes!(@path [methods()] of $first) };
                let methods = $crate::routes::described::with_handler(methods, of_first, $first);
                $(
                    let of_next = utoipa_axum::paste! { utoipa_axum::routes!(@path [methods()] of $more) };
                    let methods = $crate::routes::described::with_handler(methods, of_next, $more);
                )*
                methods
            },
            describe: || utoipa_axum::routes!($first $(, $more)*),
        }
    };
}
pub(crate) use routes;

/// Adds a handler for some methods.
pub fn with_handler<T: 'static>(
    router: MethodRouter<Arc<App>>,
    methods: Vec<HttpMethod>,
    handler: impl Handler<T, Arc<App>>,
) -> MethodRouter<Arc<App>> {
    methods.iter().fold(router, |router, method| router.on(method.to_method_filter(), handler.clone()))
}

impl DescribedRoutes {
    /// Adds the handlers of a path.
    pub fn routes(mut self, handlers: PathHandlers) -> Self {
        self.descriptions.push(handlers.describe);
        self.route(&handlers.path, handlers.methods)
    }

    /// Adds a route without a description.
    pub fn route(self, path: &str, methods: MethodRouter<Arc<App>>) -> Self {
        Self { router: self.router.route(path, methods), ..self }
    }

    /// Adds all routes of another table.
    pub fn merge(mut self, other: Self) -> Self {
        self.descriptions.extend(other.descriptions);
        Self { router: self.router.merge(other.router), ..self }
    }

    /// Lets the bodies of these routes be this large, in bytes.
    pub fn with_largest_body(self, max: usize) -> Self {
        Self { router: self.router.layer(DefaultBodyLimit::max(max)).layer(Extension(BodyLimit(max))), ..self }
    }

    /// Returns the routes alone.
    pub fn into_router(self) -> Router<Arc<App>> {
        self.router
    }

    /// Returns the document with the descriptions of the routes.
    pub fn describe(&self, document: OpenApi) -> OpenApi {
        let described = OpenApiRouter::with_openapi(document);
        self.descriptions.iter().fold(described, |all, describe| all.routes(describe())).into_openapi()
    }
}

#[cfg(test)]
mod tests {
    use crate::read_limit::{LONG_READS, POSTED_READS, STREAMS};

    #[test]
    fn the_limits_on_reads_name_routes_that_exist() {
        let document = super::super::routes(1).describe(utoipa::openapi::OpenApi::default());
        for path in LONG_READS.into_iter().chain(STREAMS).chain(POSTED_READS) {
            assert!(document.paths.paths.contains_key(path), "{path}");
        }
    }

    #[test]
    fn the_handlers_of_an_entry_share_a_path() {
        let all = super::super::routes(1);
        assert!(all.descriptions.len() > 100);
        for describe in all.descriptions {
            let (_, paths, _) = describe();
            assert_eq!(paths.paths.len(), 1, "{:?}", paths.paths.keys());
        }
    }
}
