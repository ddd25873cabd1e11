//! The host and the path of a remote, from its URL.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// The host, without a port.
    pub(super) host: String,
    /// `owner/name`, or `group/subgroup/name`.
    pub(super) path: String,
}

/// Hosts that stand for others, where a firewall leaves only port 443.
const STANDING_FOR: &[(&str, &str)] = &[("ssh.github.com", "github.com"), ("altssh.gitlab.com", "gitlab.com")];

impl Address {
    /// Reads what git takes for an address; `None`: it is a path on this machine.
    pub(super) fn parse(url: &str) -> Option<Self> {
        let (host, path) = match url.split_once("://") {
            Some(("file", _)) => return None,
            Some((_, rest)) => rest.split_once('/')?,
            // `git@host:path`; with a slash before the colon it is a path.
            None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?,
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host).to_ascii_lowercase();
        let known = STANDING_FOR.iter().find(|(other, _)| *other == host);
        let host = known.map_or(host, |(_, host)| (*host).to_owned());
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path).to_owned();
        (!host.is_empty() && !path.is_empty()).then_some(Self { host, path })
    }

    /// Whether the host is a name that only the user's settings of ssh know.
    pub(super) fn is_alias(&self) -> bool {
        !self.host.contains('.')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_git_reads_them() {
        let acme = |host: &str| Some((host.to_owned(), "acme/shop".to_owned()));
        for (url, expected) in [
            ("https://github.com/acme/shop.git", acme("github.com")),
            ("https://token:x@GitHub.com/acme/shop/", acme("github.com")),
            ("git@github.com:acme/shop.git", acme("github.com")),
            ("ssh://git@git.example.com:2222/acme/shop.git", acme("git.example.com")),
            ("ssh://git@ssh.github.com:443/acme/shop", acme("github.com")),
            ("work:acme/shop", acme("work")),
            ("/srv/git/shop.git", None),
            ("../shop", None),
            ("./a:b/shop", None),
            ("file:///srv/git/shop.git", None),
            ("https://github.com/", None),
            ("", None),
        ] {
            assert_eq!(Address::parse(url).map(|it| (it.host, it.path)), expected, "{url}");
        }
        let grouped = Address::parse("https://gitlab.com/a/b/c.git").unwrap();
        assert_eq!(grouped.path, "a/b/c");
        assert!(Address::parse("work:acme/shop").unwrap().is_alias());
    }
}
