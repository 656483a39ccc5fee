package postgres

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// extension implements postgres_extension.present.
type extension struct {
	server
	IfNotExists any    `sls:"if_not_exists"`
	Schema      string `sls:"schema"`
	ExtVersion  string `sls:"ext_version"`
	FromVersion any    `sls:"from_version"`
}

func (e *extension) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, e)
}
func (e *extension) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, e)
}

func (e *extension) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	rows, err := e.rows(ctx, h, "",
		"SELECT extversion, nspname FROM pg_extension x JOIN pg_namespace n ON n.oid = x.extnamespace WHERE extname = "+
			client.Quoted(e.Name))
	if err != nil {
		return client.Work{}, err
	}
	if len(rows) == 0 {
		statement := "CREATE EXTENSION " + ident(e.Name)
		if e.Schema != "" {
			statement += " SCHEMA " + ident(e.Schema)
		}
		if e.ExtVersion != "" {
			statement += " VERSION " + client.Quoted(e.ExtVersion)
		}
		return client.Work{Statements: []string{statement}, Changes: value.NewMap(e.Name, "Installed"),
			Would: "create the extension " + e.Name}, nil
	}
	w := client.Work{Changes: value.NewMap(e.Name, "Upgraded"), Fine: "the extension " + e.Name +
		" is there", Would: "change the extension " + e.Name}
	if e.ExtVersion != "" && e.ExtVersion != rows[0][0] {
		w.Statements = append(w.Statements,
			fmt.Sprintf("ALTER EXTENSION %s UPDATE TO %s", ident(e.Name), client.Quoted(e.ExtVersion)))
	}
	if e.Schema != "" && e.Schema != rows[0][1] {
		w.Statements = append(w.Statements, fmt.Sprintf("ALTER EXTENSION %s SET SCHEMA %s", ident(e.Name), ident(e.Schema)))
	}
	return w, nil
}
