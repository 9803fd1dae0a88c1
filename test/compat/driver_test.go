package compat

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A driver is one SDK in one version, and what it can do.
type driver struct {
	name string
	// tools are the commands that must be installed.
	tools []string
	// prepare fetches the SDK into dir, which is empty and lives as long as the
	// test, and returns the command to which host, port and namespace are added.
	prepare func(t *testing.T, dir string) []string

	groups, namespaces, updates bool
	// grpc: the SDK speaks gRPC. Its instances live as long as its connection, and
	// it does not beat.
	grpc bool
	// redo is how long the SDK may take to bring its registrations to a server that
	// is back; 0 stands for the time of a poll.
	redo time.Duration
	// batches, persists and configures: it can register several instances in one
	// call, register persistent ones, and has a configuration client.
	batches, persists, configures bool
	// pushed: the SDK is told of changes, over UDP or its connection. The others
	// only poll.
	pushed bool
	// keepsLast: the SDK ignores an empty list once it had another.
	keepsLast bool
	// cluster is what the SDK registers an instance in that names none; empty means
	// DEFAULT.
	cluster string
	// lines is how many lines a minute the SDK writes of its own accord; 0 stands for
	// the usual few.
	lines int
	// noClusters: other clusters than DEFAULT are of no use with this SDK.
	noClusters bool
}

// drivers returns all drivers, each with the version it fetches.
func drivers() []*driver {
	return []*driver{
		{
			name: "go-v1", tools: []string{"go"}, prepare: prepareGo("go-v1"),
			groups: true, namespaces: true, updates: true, pushed: true, keepsLast: true, configures: true,
		},
		{
			// Speaks the 0.9 API. Its beats do not name the cluster.
			name: "node-1.1", tools: []string{"node", "npm"}, prepare: prepareNode("nacos-naming@1.1.2"),
			pushed: true, noClusters: true,
		},
		{
			// Subscribes to the cluster DEFAULT when it is told none.
			name: "node-2.6", tools: []string{"node", "npm"}, prepare: prepareNode("nacos@2.6.3"),
			groups: true, namespaces: true, pushed: true, keepsLast: true, noClusters: true, configures: true,
		},
		{
			// Writes two lines for each call, and polls every 2 s.
			name: "python-0.1", tools: []string{"python3"}, prepare: preparePython("0.1.14", "driver.py"), lines: 180,
			groups: true, namespaces: true, updates: true, cluster: "None", configures: true,
		},
		{
			// When an instance names no cluster, its beats make another one in DEFAULT.
			name: "python-1.0", tools: []string{"python3"}, prepare: preparePython("1.0.0", "driver.py"),
			groups: true, namespaces: true, updates: true, cluster: "None", configures: true,
		},
		{
			name: "java-0.9", tools: []string{"mvn", "javac", "java"}, prepare: prepareJava("0.9.0", "v09"),
			namespaces: true, pushed: true, keepsLast: true, configures: true,
		},
		{
			name: "java-1.1", tools: []string{"mvn", "javac", "java"}, prepare: prepareJava("1.1.4", "v1"),
			groups: true, namespaces: true, updates: true, pushed: true, keepsLast: true, configures: true,
		},
		{
			name: "java-1.4", tools: []string{"mvn", "javac", "java"}, prepare: prepareJava("1.4.8", "v1"),
			groups: true, namespaces: true, updates: true, pushed: true, configures: true,
		},
		{
			name: "go-v2", tools: []string{"go"}, prepare: prepareGo("go-v2"), keepsLast: true,
			groups: true, namespaces: true, updates: true, pushed: true, grpc: true, batches: true, persists: true, configures: true,
		},
		{
			// Does not see its stream end. Its channel dials anew by itself, and its second
			// health check after that, 5 to 10 s later, tells it that it is not registered.
			// Then it looks every 30 s what it must register again.
			name: "python-2.0", tools: []string{"python3"}, prepare: preparePython("2.0.11", "driver2.py"), keepsLast: true,
			groups: true, namespaces: true, updates: true, pushed: true, grpc: true, batches: true, persists: true, configures: true,
			redo: 45 * time.Second,
		},
		{
			// Looks every 30 s what it must register again.
			name: "python-3.2", tools: []string{"python3"}, prepare: preparePython("3.2.0", "driver2.py"), keepsLast: true,
			groups: true, namespaces: true, updates: true, pushed: true, grpc: true, batches: true, persists: true, configures: true,
			redo: 40 * time.Second,
		},
		{
			name: "java-2.1", tools: []string{"mvn", "javac", "java"}, prepare: prepareJava("2.1.2", "v2"),
			groups: true, namespaces: true, updates: true, pushed: true, grpc: true, batches: true, persists: true, configures: true,
		},
		{
			name: "java-2.5", tools: []string{"mvn", "javac", "java"}, prepare: prepareJava("2.5.1", "v2"),
			groups: true, namespaces: true, updates: true, pushed: true, grpc: true, batches: true, persists: true, configures: true,
		},
		{
			name: "java-3.0", tools: []string{"mvn", "javac", "java"}, prepare: prepareJava("3.0.3", "v2"),
			groups: true, namespaces: true, updates: true, pushed: true, grpc: true, batches: true, persists: true, configures: true,
		},
		{
			name: "java-3.1", tools: []string{"mvn", "javac", "java"}, prepare: prepareJava("3.1.1", "v2"),
			groups: true, namespaces: true, updates: true, pushed: true, grpc: true, batches: true, persists: true, configures: true,
		},
		{
			name: "rust-0.8", tools: []string{"cargo"}, prepare: prepareRust, keepsLast: true,
			groups: true, namespaces: true, updates: true, pushed: true, grpc: true, batches: true, persists: true, configures: true,
			redo: 30 * time.Second,
		},
	}
}

// missing returns a tool that is not installed, or an empty text.
func (d *driver) missing() string {
	for _, tool := range d.tools {
		if _, err := exec.LookPath(tool); err != nil {
			return tool
		}
	}
	return ""
}

// prepareGo builds the driver in a module of its own.
func prepareGo(module string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		bin := filepath.Join(dir, "driver")
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".")
		cmd.Dir = source(t, module)
		output(t, cmd)
		return []string{bin}
	}
}

func prepareNode(sdk string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		cmd := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--prefix", dir, sdk)
		output(t, cmd)
		return []string{"node", filepath.Join(source(t, "node"), "driver.js"), dir}
	}
}

func preparePython(version, program string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		output(t, exec.CommandContext(t.Context(), "python3", "-m", "venv", dir))
		python := filepath.Join(dir, "bin", "python")
		output(t, exec.CommandContext(t.Context(), python, "-m", "pip", "-q", "install", "nacos-sdk-python=="+version))
		return []string{python, filepath.Join(source(t, "python"), program)}
	}
}

// prepareRust builds the driver without optimisation, which takes minutes the first
// time; what was built is kept in the user's cache, as the other tools keep theirs.
func prepareRust(t *testing.T, _ string) []string {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(cache, "rollcall-compat", "rust")
	cmd := exec.CommandContext(t.Context(), "cargo", "build", "--quiet", "--locked", "--target-dir", target)
	cmd.Dir = source(t, "rust")
	output(t, cmd)
	return []string{filepath.Join(target, "debug", "driver")}
}

// prepareJava compiles the driver with the calls of one age of the client.
func prepareJava(version, calls string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		src := source(t, "java")
		paths := filepath.Join(dir, "classpath")
		mvn := []string{"-q", "-B", "-f", filepath.Join(src, "pom.xml"), "-Dnacos.version=" + version, "-Dmdep.outputFile=" + paths}
		if calls == "v2" {
			mvn = append(mvn, "-Plogback")
		}
		output(t, exec.CommandContext(t.Context(), "mvn", append(mvn, "dependency:build-classpath")...))
		list, err := os.ReadFile(paths)
		if err != nil {
			t.Fatal(err)
		}
		classpath := strings.TrimSpace(string(list))
		compile := []string{"-cp", classpath, "-d", dir}
		for _, folder := range []string{"common", calls} {
			files, err := filepath.Glob(filepath.Join(src, folder, "*.java"))
			if err != nil {
				t.Fatal(err)
			}
			compile = append(compile, files...)
		}
		output(t, exec.CommandContext(t.Context(), "javac", compile...))
		return []string{
			"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.home=.", // each client's own folder
			"-cp", dir + string(os.PathListSeparator) + classpath, "Driver", version,
		}
	}
}

// source returns the absolute path of a driver's folder.
func source(t *testing.T, folder string) string {
	t.Helper()
	path, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// output runs a command to its end and fails the test with what it printed when it
// does not succeed.
func output(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
}
