package postgres

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// kind is a kind of object that is dropped by name.
type kind struct{ what, find, drop string }

func databases() kind {
	return kind{"database", "SELECT 1 FROM pg_database WHERE datname = ", "DROP DATABASE "}
}
func roles() kind { return kind{"role", "SELECT 1 FROM pg_roles WHERE rolname = ", "DROP ROLE "} }
func extensions() kind {
	return kind{"extension", "SELECT 1 FROM pg_extension WHERE extname = ", "DROP EXTENSION "}
}
func languages() kind {
	return kind{"language", "SELECT 1 FROM pg_language WHERE lanname = ", "DROP LANGUAGE "}
}
func tablespaces() kind {
	return kind{"tablespace", "SELECT 1 FROM pg_tablespace WHERE spcname = ", "DROP TABLESPACE "}
}

// absent implements the absent functions for these kinds.
type absent struct {
	server
	Cascade  bool `sls:"cascade"`
	IfExists any  `sls:"if_exists"` // no effect: a missing object is never dropped
	Restrict any  `sls:"restrict"`  // no effect: it is the default without cascade

	kind kind
}

func (a *absent) Gone() bool { return true }
func (a *absent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, a)
}
func (a *absent) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, a)
}

func (a *absent) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	_, ok, err := a.one(ctx, h, "", a.kind.find+client.Quoted(a.Name))
	if err != nil || !ok {
		return client.Work{Fine: fmt.Sprintf("there is no %s %s", a.kind.what, a.Name)}, err
	}
	statement := a.kind.drop + ident(a.Name)
	if a.Cascade {
		statement += " CASCADE"
	}
	return client.Work{Statements: []string{statement}, Changes: value.NewMap(a.Name, "Absent"),
		Would: fmt.Sprintf("drop the %s %s", a.kind.what, a.Name)}, nil
}
