// Command httpstack compares HTTP/1.1 stacks by a handler that does nothing: it
// answers a beat of a Java client with constant bytes. The server runs on one
// core and the load on another, each stack in several rounds in turn, so that
// what else the machine does meets all of them.
//
//	go run ./bench/httpstack
//
// For each stack it prints requests per second and CPU time per request of the
// server, the best of the rounds: on a shared machine the CPU time is the figure
// to trust. Then it opens idle connections, each after one request, and prints by
// how much each made the server's resident memory grow. It needs Linux and
// taskset.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/process"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "httpstack:", err)
		os.Exit(1)
	}
}

// options are the flags of all three roles: the parent, and the server and the
// load generator that it starts as children pinned to a core.
type options struct {
	role      string
	stack     string
	address   string
	serverCPU string
	loadCPU   string
	stacks    string
	pid       int
	conns     int
	idle      int
	rounds    int
	length    time.Duration
}

func run(args []string) error {
	var o options
	flags := flag.NewFlagSet("httpstack", flag.ContinueOnError)
	flags.StringVar(&o.role, "role", "compare", "compare, server, load or idle (the children are started by compare)")
	flags.StringVar(&o.stack, "stack", "", "stack of the role server")
	flags.StringVar(&o.address, "address", "", "server address of the role load")
	flags.IntVar(&o.pid, "pid", 0, "server process of the role idle")
	flags.StringVar(&o.serverCPU, "server-cpu", "0", "core of the server")
	flags.StringVar(&o.loadCPU, "load-cpu", "1", "core of the load generator")
	flags.StringVar(&o.stacks, "stacks", strings.Join(stackNames(), ","), "stacks to compare")
	flags.IntVar(&o.conns, "conns", 64, "keep-alive connections")
	flags.IntVar(&o.idle, "idle", 4000, "idle connections to measure memory with")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds of each stack")
	flags.DurationVar(&o.length, "length", 2*time.Second, "length of a round")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch o.role {
	case "server":
		return serve(o.stack)
	case "load":
		return load(o)
	case "idle":
		return idle(o)
	case "compare":
		return compare(o)
	default:
		return fmt.Errorf("unknown role %q", o.role)
	}
}

// result is what the rounds of a stack measured.
type result struct {
	perSecond float64
	cpu       time.Duration // server CPU time per request
	idle      int64         // bytes of resident memory per idle connection
}

func compare(o options) error {
	names := strings.Split(o.stacks, ",")
	best := map[string]result{}
	for range o.rounds {
		for _, name := range names {
			r, err := round(o, name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if b, seen := best[name]; seen {
				r = result{max(r.perSecond, b.perSecond), min(r.cpu, b.cpu), min(r.idle, b.idle)}
			}
			best[name] = r
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "stack\trequests/s\tserver CPU/request\tidle connection\t")
	for _, name := range names {
		r := best[name]
		fmt.Fprintf(w, "%s\t%.0f\t%.2f µs\t%.1f KiB\t\n", name, r.perSecond, float64(r.cpu)/1e3, float64(r.idle)/1024)
	}
	return w.Flush()
}

// round measures one stack once.
func round(o options, stack string) (result, error) {
	server, err := o.child(o.serverCPU, "-role", "server", "-stack", stack)
	if err != nil {
		return result{}, err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return result{}, err
	}
	if err := server.Start(); err != nil {
		return result{}, err
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return result{}, fmt.Errorf("server did not start: %w", err)
	}
	address = strings.TrimSpace(address)
	pid := server.Process.Pid

	before, err := process.Read(pid)
	if err != nil {
		return result{}, err
	}
	var requests int
	var took time.Duration
	err = o.scan([]any{&requests, (*int64)(&took)}, "-role", "load", "-address", address, "-conns", fmt.Sprint(o.conns), "-length", o.length.String())
	if err != nil {
		return result{}, err
	}
	after, err := process.Read(pid)
	if err != nil {
		return result{}, err
	}
	r := result{
		perSecond: float64(requests) / took.Seconds(),
		cpu:       (after.CPU - before.CPU) / time.Duration(max(requests, 1)),
	}
	err = o.scan([]any{&r.idle}, "-role", "idle", "-address", address, "-idle", fmt.Sprint(o.idle), "-pid", fmt.Sprint(pid))
	return r, err
}

// child returns this program, pinned to a core, in another role.
func (o options) child(cpu string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("taskset", append([]string{"-c", cpu, self}, args...)...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// scan runs a child on the load core and reads the numbers that it prints.
func (o options) scan(into []any, args ...string) error {
	cmd, err := o.child(o.loadCPU, args...)
	if err != nil {
		return err
	}
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%v: %w", args[:2], err)
	}
	if _, err := fmt.Sscan(string(out), into...); err != nil {
		return fmt.Errorf("%v printed %q: %w", args[:2], out, err)
	}
	return nil
}

// serve runs a stack until it is killed, and prints its address.
func serve(stack string) error {
	i := slices.IndexFunc(stacks, func(s stackEntry) bool { return s.name == stack })
	if i < 0 {
		return fmt.Errorf("unknown stack %q", stack)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	return stacks[i].serve(ln)
}
