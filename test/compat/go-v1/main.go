// Command go-v1 drives nacos-sdk-go v1 for the compatibility tests: it reads orders
// from standard input and writes what the SDK saw to standard output, one JSON
// object a line. Arguments: server host, server port, namespace.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/nacos-group/nacos-sdk-go/clients"
	"github.com/nacos-group/nacos-sdk-go/clients/naming_client"
	"github.com/nacos-group/nacos-sdk-go/common/constant"
	"github.com/nacos-group/nacos-sdk-go/model"
	"github.com/nacos-group/nacos-sdk-go/vo"
)

const sdkPath = "github.com/nacos-group/nacos-sdk-go"

type instance struct {
	Service  string            `json:"service,omitempty"`
	Group    string            `json:"group,omitempty"`
	Cluster  string            `json:"cluster"`
	IP       string            `json:"ip"`
	Port     uint64            `json:"port"`
	Weight   float64           `json:"weight"`
	Enabled  bool              `json:"enabled"`
	Healthy  bool              `json:"healthy"`
	Metadata map[string]string `json:"metadata"`
}

type order struct {
	ID int    `json:"id"`
	Op string `json:"op"`
	instance
}

type answer struct {
	ID    int        `json:"id"`
	Error string     `json:"error,omitempty"`
	Text  string     `json:"text,omitempty"`
	Hosts []instance `json:"hosts"`
}

type change struct {
	Service string     `json:"service"`
	Hosts   []instance `json:"hosts"`
}

// printer writes whole lines; listeners are called on the SDK's goroutines.
type printer struct {
	mu  sync.Mutex
	out *os.File
}

func (p *printer) print(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.out.Write(append(text, '\n')); err != nil {
		fatal(err)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	out := &printer{out: os.Stdout}
	os.Stdout = os.Stderr // what the SDK prints is not for the test
	param, err := settings(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fatal(err)
	}
	client, err := clients.NewNamingClient(param)
	if err != nil {
		fatal(err)
	}
	out.print(map[string]string{"ready": "nacos-sdk-go " + version()})
	orders := bufio.NewScanner(os.Stdin)
	orders.Buffer(nil, 1<<20)
	for orders.Scan() {
		var o order
		if err := json.Unmarshal(orders.Bytes(), &o); err != nil {
			fatal(err)
		}
		a := answer{ID: o.ID}
		if err := obey(client, param, &o, &a, out); err != nil {
			a.Error = err.Error()
		}
		out.print(a)
	}
}

func settings(host, port, namespace string) (vo.NacosClientParam, error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return vo.NacosClientParam{}, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return vo.NacosClientParam{}, err
	}
	return vo.NacosClientParam{
		ClientConfig: &constant.ClientConfig{
			NamespaceId: namespace, TimeoutMs: 5000, NotLoadCacheAtStart: true,
			LogDir: dir + "/log", CacheDir: dir + "/cache", LogLevel: "info",
		},
		ServerConfigs: []constant.ServerConfig{{IpAddr: host, Port: n, ContextPath: "/nacos", Scheme: "http"}},
	}, nil
}

func obey(c naming_client.INamingClient, param vo.NacosClientParam, o *order, a *answer, out *printer) error {
	switch o.Op {
	case "register":
		return done(c.RegisterInstance(vo.RegisterInstanceParam{
			Ip: o.IP, Port: o.Port, Weight: o.Weight, Enable: o.Enabled, Healthy: true, Metadata: o.Metadata,
			ClusterName: o.Cluster, ServiceName: o.Service, GroupName: o.Group, Ephemeral: true,
		}))
	case "deregister":
		return done(c.DeregisterInstance(vo.DeregisterInstanceParam{
			Ip: o.IP, Port: o.Port, Cluster: o.Cluster, ServiceName: o.Service, GroupName: o.Group, Ephemeral: true,
		}))
	case "update":
		return done(c.UpdateInstance(vo.UpdateInstanceParam{
			Ip: o.IP, Port: o.Port, Weight: o.Weight, Enable: o.Enabled, Metadata: o.Metadata,
			ClusterName: o.Cluster, ServiceName: o.Service, GroupName: o.Group, Ephemeral: true,
		}))
	case "lookup":
		hosts, err := c.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: o.Service, GroupName: o.Group})
		for _, h := range hosts {
			a.Hosts = append(a.Hosts, shown(h))
		}
		return err
	case "subscribe":
		service := o.Service
		return c.Subscribe(&vo.SubscribeParam{
			ServiceName: o.Service, GroupName: o.Group,
			SubscribeCallback: func(hosts []model.SubscribeService, err error) {
				told := change{Service: service}
				for _, h := range hosts {
					told.Hosts = append(told.Hosts, instance{
						IP: h.Ip, Port: h.Port, Cluster: h.ClusterName, Weight: h.Weight,
						Enabled: h.Enable, Healthy: h.Healthy, Metadata: h.Metadata,
					})
				}
				out.print(told) // err says that the list is empty
			},
		})
	case "config":
		text, err := config(param, o)
		a.Text = text
		return err
	case "status":
		_, err := c.GetAllServicesInfo(vo.GetAllServiceInfoParam{PageNo: 1, PageSize: 10})
		a.Text = "UP"
		return err
	}
	return fmt.Errorf("no order %q", o.Op)
}

// config reads, watches and publishes a configuration, and leaves the watch on.
func config(param vo.NacosClientParam, o *order) (string, error) {
	c, err := clients.NewConfigClient(param)
	if err != nil {
		return "", err
	}
	content, err := c.GetConfig(vo.ConfigParam{DataId: o.Service, Group: o.Group})
	text := "get: " + content
	if err != nil {
		text = "get: " + err.Error()
	}
	if err := c.ListenConfig(vo.ConfigParam{DataId: o.Service, Group: o.Group, OnChange: func(_, _, _, data string) {
		fmt.Fprintln(os.Stderr, "the listener was told", data)
	}}); err != nil {
		return text, err
	}
	ok, err := c.PublishConfig(vo.ConfigParam{DataId: o.Service, Group: o.Group, Content: "a"})
	return fmt.Sprintf("%s; publish: %t %v", text, ok, err), nil
}

func shown(h model.Instance) instance {
	return instance{
		IP: h.Ip, Port: h.Port, Cluster: h.ClusterName, Weight: h.Weight,
		Enabled: h.Enable, Healthy: h.Healthy, Metadata: h.Metadata,
	}
}

func done(ok bool, err error) error {
	if err == nil && !ok {
		return fmt.Errorf("the SDK answered false")
	}
	return err
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == sdkPath {
			return m.Version
		}
	}
	return "unknown"
}
