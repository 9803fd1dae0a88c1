package cli

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

const (
	// defaultServer is where `rollcall serve` listens unless told otherwise.
	defaultServer = "http://127.0.0.1:8848"
	// defaultPort is that of a server that is named without a scheme and a port.
	defaultPort = "8848"
)

// parseServers reads a list of servers with commas between. They are asked in the same
// way, so that they may differ in host and port alone.
func parseServers(text string) ([]*url.URL, error) {
	var servers []*url.URL
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		u, err := serverURL(entry)
		if err != nil {
			return nil, err
		}
		if first := servers; len(first) > 0 && (u.Scheme != first[0].Scheme || u.Path != first[0].Path) {
			return nil, fmt.Errorf("server: %s and %s cannot be in one list, for they differ in more than host and port", first[0], u)
		}
		servers = append(servers, u)
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("server: %q names none; write host:port, several with commas between", text)
	}
	return servers, nil
}

// nacosPath begins the paths of all calls that Nacos has too.
const nacosPath = "/nacos"

// serverURL reads host, host:port or a URL, and completes the port. The path of a URL is
// what precedes that of calls: /nacos, which addresses of Nacos servers are often given
// with, is left out.
func serverURL(text string) (*url.URL, error) {
	whole, port := text, ""
	if !strings.Contains(text, "://") {
		if ip, err := netip.ParseAddr(text); err == nil && ip.Is6() {
			whole = "[" + text + "]"
		}
		whole, port = "http://"+whole, defaultPort
	}
	u, err := url.Parse(whole)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("server: %q is no address of a server; write host:port, or http:// or https:// before it", text)
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), cmp.Or(port, map[string]string{"http": "80", "https": "443"}[u.Scheme]))
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
		return nil, fmt.Errorf("server: %q: %s is no port; write a number from 1 to 65535", text, u.Port())
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), nacosPath)
	return u, nil
}
