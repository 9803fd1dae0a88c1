// Command go-v2 drives nacos-sdk-go v2 for the compatibility tests: it reads orders
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

	"github.com/nacos-group/nacos-sdk-go/v2/clients"
	"github.com/nacos-group/nacos-sdk-go/v2/clients/naming_client"
	"github.com/nacos-group/nacos-sdk-go/v2/common/constant"
	"github.com/nacos-group/nacos-sdk-go/v2/model"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"
)

const sdkPath = "github.com/nacos-group/nacos-sdk-go/v2"

type instance struct {
	Service    string            `json:"service,omitempty"`
	Group      string            `json:"group,omitempty"`
	Cluster    string            `json:"cluster"`
	IP         string            `json:"ip"`
	Port       uint64            `json:"port"`
	Weight     float64           `json:"weight"`
	Enabled    bool              `json:"enabled"`
	Healthy    bool              `json:"healthy"`
	Persistent bool              `json:"persistent,omitempty"`
	Metadata   map[string]string `json:"metadata"`
}

type order struct {
	ID int    `json:"id"`
	Op string `json:"op"`
	instance
	Batch []instance `json:"batch"`
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

// driver holds the SDK's naming client and what it was made with.
type driver struct {
	param  vo.NacosClientParam
	naming naming_client.INamingClient
	out    *printer
}

func main() {
	d := &driver{out: &printer{out: os.Stdout}}
	os.Stdout = os.Stderr // what the SDK prints is not for the test
	if err := d.connect(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fatal(err)
	}
	d.out.print(map[string]string{"ready": "nacos-sdk-go " + version()})
	orders := bufio.NewScanner(os.Stdin)
	orders.Buffer(nil, 1<<20)
	for orders.Scan() {
		var o order
		if err := json.Unmarshal(orders.Bytes(), &o); err != nil {
			fatal(err)
		}
		a := answer{ID: o.ID}
		if err := d.obey(&o, &a); err != nil {
			a.Error = err.Error()
		}
		d.out.print(a)
	}
}

func (d *driver) connect(host, port, namespace string) error {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	d.param = vo.NacosClientParam{
		ClientConfig: &constant.ClientConfig{
			NamespaceId: namespace, TimeoutMs: 5000, NotLoadCacheAtStart: true,
			LogDir: dir + "/log", CacheDir: dir + "/cache", LogLevel: "info",
		},
		ServerConfigs: []constant.ServerConfig{{IpAddr: host, Port: n, ContextPath: "/nacos", Scheme: "http"}},
	}
	d.naming, err = clients.NewNamingClient(d.param)
	return err
}

func (d *driver) obey(o *order, a *answer) error {
	switch o.Op {
	case "register":
		return done(d.naming.RegisterInstance(o.wanted(o.instance)))
	case "batch":
		param := vo.BatchRegisterInstanceParam{ServiceName: o.Service, GroupName: o.Group}
		for _, inst := range o.Batch {
			param.Instances = append(param.Instances, o.wanted(inst))
		}
		return done(d.naming.BatchRegisterInstance(param))
	case "deregister":
		return done(d.naming.DeregisterInstance(vo.DeregisterInstanceParam{
			Ip: o.IP, Port: o.Port, Cluster: o.Cluster, ServiceName: o.Service, GroupName: o.Group, Ephemeral: !o.Persistent,
		}))
	case "update":
		return done(d.naming.UpdateInstance(vo.UpdateInstanceParam(o.wanted(o.instance))))
	case "lookup":
		hosts, err := d.naming.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: o.Service, GroupName: o.Group})
		a.Hosts = shown(hosts)
		return err
	case "subscribe":
		return d.subscribe(o)
	case "status":
		a.Text = map[bool]string{true: "UP", false: "DOWN"}[d.naming.ServerHealthy()]
		return nil
	case "config":
		text, err := d.config(o)
		a.Text = text
		return err
	}
	return fmt.Errorf("no order %q", o.Op)
}

// wanted is an instance of the order's service as the SDK registers it.
func (o *order) wanted(inst instance) vo.RegisterInstanceParam {
	return vo.RegisterInstanceParam{
		Ip: inst.IP, Port: inst.Port, Weight: inst.Weight, Enable: inst.Enabled, Healthy: true, Metadata: inst.Metadata,
		ClusterName: inst.Cluster, ServiceName: o.Service, GroupName: o.Group, Ephemeral: !inst.Persistent,
	}
}

func (d *driver) subscribe(o *order) error {
	service := o.Service
	return d.naming.Subscribe(&vo.SubscribeParam{
		ServiceName: service, GroupName: o.Group,
		SubscribeCallback: func(hosts []model.Instance, _ error) { // the error says that the list is empty
			d.out.print(change{Service: service, Hosts: shown(hosts)})
		},
	})
}

// config reads, watches and publishes a configuration, and leaves the watch on.
func (d *driver) config(o *order) (string, error) {
	c, err := clients.NewConfigClient(d.param)
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

func shown(hosts []model.Instance) []instance {
	var out []instance
	for _, h := range hosts {
		out = append(out, instance{
			IP: h.Ip, Port: h.Port, Cluster: h.ClusterName, Weight: h.Weight,
			Enabled: h.Enable, Healthy: h.Healthy, Metadata: h.Metadata,
		})
	}
	return out
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
