use crate::process::{Running, free_port, wait_until_open};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

const PROGRAM: &str = "/usr/sbin/nginx";

/// An nginx in front of another server.
#[derive(Debug)]
pub struct Nginx {
    // `None` while it is dropped.
    running: Option<Running>,
    port: u16,
}

impl Nginx {
    /// Passes requests on to `upstream`, with these lines in its `location`.
    pub fn start(upstream: SocketAddr, location: &str) -> Self {
        assert!(Path::new(PROGRAM).exists(), "nginx is not installed: run `cargo xtask servers`");
        let folder = tempfile::Builder::new().prefix("aldaba-nginx-").tempdir().expect("a folder").keep();
        let port = free_port();
        let at = folder.display();
        // One process, which needs no other user.
        let configuration = format!(
            "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log {at}/error.log;\nevents {{}}\n\
             http {{\n access_log off;\n client_body_temp_path {at}/body;\n proxy_temp_path {at}/proxy;\n \
             fastcgi_temp_path {at}/fastcgi;\n uwsgi_temp_path {at}/uwsgi;\n scgi_temp_path {at}/scgi;\n \
             server {{\n  listen 127.0.0.1:{port};\n  location / {{\n   proxy_pass http://{upstream};\n   {location}\n  }}\n }}\n}}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, configuration).expect("the folder is ours");
        let file = file.display().to_string();
        let running = Running::start(None, &folder, Path::new(PROGRAM), &["-c", &file, "-e", "stderr"]);
        wait_until_open(port, &folder);
        Self { running: Some(running), port }
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.end();
        }
    }
}
