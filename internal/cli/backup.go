package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

// standard is the name that stands for standard input or output.
const standard = "-"

func (a *app) backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup [FILE|-]",
		Short: "Copy the durable data of a running server into a file",
		Long: `Copy the durable data of a running server into a file, or to standard output:
persistent instances, service and cluster settings, namespaces, switches and
operators' changes. The copy has checksums and an end mark, so that restore
knows a damaged one. A file appears when it is complete, in place of one of
that name.`,
		Args: arguments(0, 1),
	}
	return a.clientCommand(cmd, func(ctx context.Context, c *client, args []string) error {
		target := fileOf(args)
		if target == standard && isTerminal(c.out) {
			return &usageError{errors.New("file: a backup is nothing to read; name a file, or write to a pipe")}
		}
		return c.fetch(ctx, "/backup", target)
	})
}

func (a *app) exportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export [FILE|-]",
		Short: "Write the durable data of a running server as JSON, one object a line",
		Long: `Write the durable data of a running server as JSON, one object a line, into a
file or to standard output. Other programs can read it; to put data back, use
backup and restore.`,
		Args: arguments(0, 1),
	}
	return a.clientCommand(cmd, func(ctx context.Context, c *client, args []string) error {
		return c.fetch(ctx, "/export", fileOf(args))
	})
}

// restoreTime is how long a restore may take, unless told otherwise: its answer
// begins when all is done.
const restoreTime = "15m"

func (a *app) restoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore FILE|-",
		Short: "Put a backup in the place of the durable data of a running server",
		Long: `Put a backup in the place of the durable data of a running server. The server
checks all of it first; when it is damaged or no backup, nothing happens.
Ephemeral instances stay as they are. A server that holds durable data already,
other than its switches, is left alone without --yes.`,
		Args: arguments(1, 1),
	}
	yes := cmd.Flags().Bool("yes", false, "Replace what the server holds.")
	a.clientCommand(cmd, func(ctx context.Context, c *client, args []string) error {
		return c.restore(ctx, args[0], *yes)
	})
	timeout := cmd.Flags().Lookup("timeout")
	timeout.DefValue = restoreTime
	_ = timeout.Value.Set(restoreTime) // a duration, so there is no error
	return cmd
}

func fileOf(args []string) string {
	if len(args) == 0 {
		return standard
	}
	return args[0]
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}

// fetch writes what a path of the operator API gives into a file, or to standard
// output.
func (c *client) fetch(ctx context.Context, path, target string) error {
	body, err := c.do(ctx, http.MethodGet, operatorAPI+path, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	whole := &fetched{body: body}
	if target == standard {
		_, err = io.Copy(c.out, whole)
	} else {
		err = replaceFile(target, whole)
	}
	switch {
	case whole.err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case whole.err != nil:
		return fmt.Errorf("%s broke off after %d bytes: %w; what came is not complete, and the server's log says why", c.server(), whole.n, whole.err)
	case err != nil || target == standard:
		return err
	}
	answer := struct {
		File  string `json:"file"`
		Bytes int64  `json:"bytes"`
	}{target, whole.n}
	return c.show(answer, func(w io.Writer) { fmt.Fprintf(w, "wrote %s, %d bytes\n", target, whole.n) })
}

// fetched is the body of an answer. It counts the bytes, and keeps the error of
// the server apart from those of whoever writes them.
type fetched struct {
	body io.Reader
	n    int64
	err  error
}

func (f *fetched) Read(p []byte) (int, error) {
	n, err := f.body.Read(p)
	f.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// replaceFile writes a file that only its owner may read, for it may hold
// passwords of probes. It appears under its name when it is complete.
func replaceFile(path string, content io.Reader) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if failed, ok := errors.AsType[*fs.PathError](err); ok { // whose name nobody knows
		return fmt.Errorf("write %s: %w", path, failed.Err)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = temp.Close()
			_ = os.Remove(temp.Name())
		}
	}()
	if _, err := io.Copy(temp, content); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// restore sends a backup to the server, which must hold no durable data unless
// replace is set.
func (c *client) restore(ctx context.Context, source string, replace bool) error {
	if len(c.servers) > 1 {
		return &usageError{errors.New("server: a restore is for one server; name that one alone")}
	}
	content, size, err := c.open(source)
	if err != nil {
		return err
	}
	defer content.Close()
	if !replace {
		if err := c.holdsNothing(ctx); err != nil {
			return err
		}
	}
	query, err := c.signed(ctx, nil)
	if err != nil {
		return err
	}
	body, err := c.send(ctx, c.server(), http.MethodPost, operatorAPI+"/restore", query, content, size)
	if brokenOff(err) {
		return fmt.Errorf("%w; `rollcall export` shows whether the backup is in place", err)
	}
	if err != nil {
		return err
	}
	defer body.Close()
	var answer opsv1.BackupInfo
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return c.broken(ctx, err)
	}
	return c.show(answer, func(w io.Writer) {
		fmt.Fprintf(w, "restored the backup of %s, made by the server %s\n", stamp(answer.Time), answer.ID)
	})
}

// holdsNothing returns an error that names the durable data of the server, if
// there is any beside the switches, which every server has.
func (c *client) holdsNothing(ctx context.Context) error {
	body, err := c.do(ctx, http.MethodGet, operatorAPI+"/export", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	records := map[string]int{}
	for lines := json.NewDecoder(body); ; {
		var record map[string]json.RawMessage
		switch err := lines.Decode(&record); {
		case errors.Is(err, io.EOF):
			return c.mayReplace(records)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("read what %s holds: %w", c.server(), err)
		}
		for kind := range record {
			records[kind]++
		}
	}
}

// mayReplace judges a server by the number of its records of each kind.
func (c *client) mayReplace(records map[string]int) error {
	total := -records["switches"]
	for _, n := range records {
		total += n
	}
	if total == 0 {
		return nil
	}
	return fmt.Errorf("%s holds %d records of durable data, %d services and %d persistent instances among them, and a restore replaces them; take a backup of them, then say --yes",
		c.server(), total, records["service"], records["instance"])
}

// open opens a file, or standard input. size is -1 when it is not known.
func (c *client) open(source string) (content io.ReadCloser, size int64, err error) {
	if source == standard {
		return io.NopCloser(c.in), -1, nil
	}
	f, err := os.Open(source)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory; name the file that backup wrote", source)
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return f, -1, nil
	}
	return f, info.Size(), nil
}
