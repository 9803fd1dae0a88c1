//! Drives nacos-sdk for Rust for the compatibility tests: reads orders from standard
//! input and writes what the SDK saw to standard output, one JSON object a line.
//! Arguments: server host, server port, namespace.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use nacos_sdk::api::config::{ConfigChangeListener, ConfigResponse, ConfigService, ConfigServiceBuilder};
use nacos_sdk::api::naming::{
    NamingChangeEvent, NamingEventListener, NamingService, NamingServiceBuilder, ServiceInstance,
};
use nacos_sdk::api::props::ClientProps;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

type Failure = Box<dyn Error>;

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Instance {
    ip: String,
    port: i32,
    cluster: String,
    weight: f64,
    enabled: bool,
    healthy: bool,
    #[serde(skip_serializing)]
    persistent: bool,
    metadata: HashMap<String, String>,
}

impl Instance {
    fn wanted(&self) -> ServiceInstance {
        let mut wanted = ServiceInstance {
            ip: self.ip.clone(),
            port: self.port,
            weight: self.weight,
            enabled: self.enabled,
            ephemeral: !self.persistent,
            metadata: self.metadata.clone(),
            ..Default::default()
        };
        if !self.cluster.is_empty() {
            wanted.cluster_name = Some(self.cluster.clone());
        }
        wanted
    }

    fn shown(h: &ServiceInstance) -> Instance {
        Instance {
            ip: h.ip.clone(),
            port: h.port,
            cluster: h.cluster_name.clone().unwrap_or_default(),
            weight: h.weight,
            enabled: h.enabled,
            healthy: h.healthy,
            persistent: !h.ephemeral,
            metadata: h.metadata.clone(),
        }
    }
}

#[derive(Deserialize)]
struct Order {
    id: i64,
    op: String,
    #[serde(default)]
    service: String,
    #[serde(default)]
    group: String,
    #[serde(default)]
    batch: Vec<Instance>,
    #[serde(flatten)]
    instance: Instance,
}

impl Order {
    fn group(&self) -> Option<String> {
        (!self.group.is_empty()).then(|| self.group.clone())
    }
}

struct Listener {
    service: String,
}

impl NamingEventListener for Listener {
    fn event(&self, event: Arc<NamingChangeEvent>) {
        let hosts: Vec<_> = event.instances.iter().flatten().map(Instance::shown).collect();
        println!("{}", json!({"service": self.service, "hosts": hosts}));
    }
}

struct Watch;

impl ConfigChangeListener for Watch {
    fn notify(&self, config: ConfigResponse) {
        eprintln!("the listener was told {config}");
    }
}

struct Driver {
    props: ClientProps,
    naming: NamingService,
    config: Option<ConfigService>,
}

impl Driver {
    async fn obey(&mut self, o: &Order) -> Result<serde_json::Value, Failure> {
        let (service, group) = (o.service.clone(), o.group());
        match o.op.as_str() {
            "register" | "update" => self.naming.register_instance(service, group, o.instance.wanted()).await?,
            "deregister" => self.naming.deregister_instance(service, group, o.instance.wanted()).await?,
            "batch" => {
                let batch = o.batch.iter().map(Instance::wanted).collect();
                self.naming.batch_register_instance(service, group, batch).await?
            }
            "lookup" => {
                let found = self.naming.get_all_instances(service, group, Vec::new(), true).await?;
                let hosts: Vec<_> = found.iter().map(Instance::shown).collect();
                return Ok(json!({ "hosts": hosts }));
            }
            "subscribe" => {
                let listener = Arc::new(Listener { service: service.clone() });
                self.naming.subscribe(service, group, Vec::new(), listener).await?
            }
            "status" => {
                self.naming.get_service_list(1, 10, None).await?;
                return Ok(json!({"text": "UP"}));
            }
            "config" => return Ok(json!({"text": self.config(o).await?})),
            _ => return Err(format!("no order {}", o.op).into()),
        }
        Ok(json!({}))
    }

    /// Reads, watches and publishes a configuration, and leaves the watch on.
    async fn config(&mut self, o: &Order) -> Result<String, Failure> {
        let config = ConfigServiceBuilder::new(self.props.clone()).build().await?;
        let got = match config.get_config(o.service.clone(), o.group.clone()).await {
            Ok(found) => found.content().clone(),
            Err(e) => e.to_string(),
        };
        config.add_listener(o.service.clone(), o.group.clone(), Arc::new(Watch)).await?;
        let published = config.publish_config(o.service.clone(), o.group.clone(), "a".into(), None).await;
        self.config = Some(config);
        Ok(match published {
            Ok(ok) => format!("get: {got}; publish: {ok}"),
            Err(e) => format!("get: {got}; publish: {e}"),
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let args: Vec<String> = std::env::args().collect();
    let props = ClientProps::new()
        .server_addr(format!("{}:{}", args[1], args[2]))
        .namespace(args[3].clone());
    let naming = NamingServiceBuilder::new(props.clone()).build().await?;
    let mut driver = Driver { props, naming, config: None };
    println!("{}", json!({"ready": "nacos-sdk for Rust 0.8.3"}));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(text) = lines.next_line().await? {
        let order: Order = serde_json::from_str(&text)?;
        let mut answer = match driver.obey(&order).await {
            Ok(answer) => answer,
            Err(e) => json!({"error": e.to_string()}),
        };
        answer["id"] = order.id.into();
        println!("{answer}");
    }
    Ok(())
}
