//! URLs that name several hosts, as those of PostgreSQL do: `scheme://user@host,host:port/path`.

/// Returns the URL once for each of its hosts, in their order.
pub fn one_url_per_host(url: &str) -> Vec<String> {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    // A password may contain an encoded comma only.
    let hosts = url[start..end].rfind('@').map_or(start, |at| start + at + 1);
    url[hosts..end].split(',').map(|host| format!("{}{host}{}", &url[..hosts], &url[end..])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_its_own_port_and_all_share_the_rest() {
        let urls = one_url_per_host("postgres://me:a%2Cb@db1,db2:6000,[::1]:7000/runs?sslmode=require");
        let expected = [
            "postgres://me:a%2Cb@db1/runs?sslmode=require",
            "postgres://me:a%2Cb@db2:6000/runs?sslmode=require",
            "postgres://me:a%2Cb@[::1]:7000/runs?sslmode=require",
        ];
        assert_eq!(urls, expected);
        assert_eq!(one_url_per_host("postgres:///runs?host=/a,b"), ["postgres:///runs?host=/a,b"]);
        assert_eq!(one_url_per_host("redis://a,b#c,d"), ["redis://a#c,d", "redis://b#c,d"]);
    }
}
