package mysql

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// query implements mysql_query.run: it executes statements in every run.
type query struct {
	server
	Database      string `sls:"database,required"`
	Query         string `sls:"query"`
	Output        string `sls:"output"` // the path of a file for the results
	Grain         any    `sls:"grain"`
	Key           any    `sls:"key"`
	Overwrite     bool   `sls:"overwrite"`
	CheckDBExists any    `sls:"check_db_exists"` // no effect: a missing database is always an error
	ClientFlags   any    `sls:"client_flags"`
}

func (q *query) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if q.Output == "grain" {
		return module.Diff{}, diag.Argument.Hint(errors.New("grains are not written by states here"),
			"set output to the path of a file")
	}
	if q.Output != "" && !q.Overwrite {
		if _, err := h.Files.Stat(q.Output); err == nil {
			return module.Diff{Comment: q.Output + " is there, so nothing is run"}, nil
		}
	}
	if what, err := q.Awaits(h); err != nil || what != "" {
		return module.Awaits(what, "run "+q.Name), err
	}
	return module.Diff{Unknown: true, Planned: value.NewMap(), Comment: "would run " + q.Name}, nil
}

// ActsAlways reports whether the statements run in every run: they do unless their output file exists and
// overwrite is not set.
func (q *query) ActsAlways() bool { return q.Output == "" || q.Overwrite }

func (q *query) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	if what, err := q.Awaits(h); err != nil || what != "" {
		if err != nil {
			return module.Report{}, err
		}
		return module.Report{}, q.Missing(what)
	}
	p, args := q.client(h)
	p.Stdin = q.Query + "\n;\n"
	out, err := p.Do(ctx, h, append(args, "--database="+q.Database)...)
	if err != nil {
		return module.Report{}, q.explain(err)
	}
	if q.Output == "" {
		return module.Report{Changes: value.NewMap("query", "Executed"),
			Comment: strings.TrimSpace("ran " + q.Name + "\n" + out)}, nil
	}
	mode := fs.FileMode(0o600)
	err = h.Files.Write(q.Output, host.NewFile{Content: strings.NewReader(out), Mode: &mode, UID: -1, GID: -1})
	return module.Report{Changes: value.NewMap("query", "Executed. Output into "+q.Output), Comment: "ran " + q.Name}, err
}

// queryFile implements mysql_query.run_file: it executes the statements in a file of the host.
type queryFile struct {
	query
	File string `sls:"query_file"`
}

func (q *queryFile) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	data, err := h.Files.ReadFile(q.File)
	if err == nil {
		err = h.Received(host.To(ctx, host.Recipient{What: "the database"}), q.File)
	}
	if err != nil {
		return module.Report{}, diag.Download.Hint(fmt.Errorf("reading the statements: %w", err),
			"name a file of the host in query_file, and require the state that makes it")
	}
	q.Query = string(data)
	return q.query.Apply(ctx, h, d)
}
