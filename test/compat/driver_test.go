package compat

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
	// pushed: the SDK is told of changes over UDP. The others only poll.
	pushed bool
	// keepsLast: the SDK ignores an empty list once it had another.
	keepsLast bool
	// cluster is what the SDK registers an instance in that names none; empty means
	// DEFAULT.
	cluster string
	// noClusters: other clusters than DEFAULT are of no use with this SDK.
	noClusters bool
}

// drivers returns all drivers, each with the version it fetches.
func drivers() []*driver {
	return []*driver{
		{
			name: "go-v1", tools: []string{"go"}, prepare: prepareGo("go-v1"),
			groups: true, namespaces: true, updates: true, pushed: true, keepsLast: true,
		},
		{
			// Speaks the 0.9 API. Its beats do not name the cluster.
			name: "node-1.1", tools: []string{"node", "npm"}, prepare: prepareNode("1.1.2"),
			pushed: true, noClusters: true,
		},
		{
			// Subscribes to the cluster DEFAULT when it is told none.
			name: "node-2.6", tools: []string{"node", "npm"}, prepare: prepareNode("2.6.3"),
			groups: true, namespaces: true, pushed: true, keepsLast: true, noClusters: true,
		},
		{
			name: "python-0.1", tools: []string{"python3"}, prepare: preparePython("0.1.14"),
			groups: true, namespaces: true, updates: true, cluster: "None",
		},
		{
			// When an instance names no cluster, its beats make another one in DEFAULT.
			name: "python-1.0", tools: []string{"python3"}, prepare: preparePython("1.0.0"),
			groups: true, namespaces: true, updates: true, cluster: "None",
		},
		{
			name: "java-0.9", tools: []string{"mvn", "javac", "java"}, prepare: prepareJava("0.9.0", "v09"),
			namespaces: true, pushed: true, keepsLast: true,
		},
		{
			name: "java-1.1", tools: []string{"mvn", "javac", "java"}, prepare: prepareJava("1.1.4", "v1"),
			groups: true, namespaces: true, updates: true, pushed: true, keepsLast: true,
		},
		{
			name: "java-1.4", tools: []string{"mvn", "javac", "java"}, prepare: prepareJava("1.4.8", "v1"),
			groups: true, namespaces: true, updates: true, pushed: true,
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

func prepareNode(version string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		cmd := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--prefix", dir, "nacos-naming@"+version)
		output(t, cmd)
		return []string{"node", filepath.Join(source(t, "node"), "driver.js"), dir}
	}
}

func preparePython(version string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		output(t, exec.CommandContext(t.Context(), "python3", "-m", "venv", dir))
		python := filepath.Join(dir, "bin", "python")
		output(t, exec.CommandContext(t.Context(), python, "-m", "pip", "-q", "install", "nacos-sdk-python=="+version))
		return []string{python, filepath.Join(source(t, "python"), "driver.py")}
	}
}

// prepareJava compiles the driver with the calls of one age of the client.
func prepareJava(version, calls string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		src := source(t, "java")
		paths := filepath.Join(dir, "classpath")
		output(t, exec.CommandContext(t.Context(), "mvn", "-q", "-B", "-f", filepath.Join(src, "pom.xml"),
			"-Dnacos.version="+version, "-Dmdep.outputFile="+paths, "dependency:build-classpath"))
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
			"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.home=" + dir,
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
