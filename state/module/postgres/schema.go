package postgres

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// schema implements postgres_schema.present.
type schema struct {
	server
	DBName string `sls:"dbname,required"`
	Owner  string `sls:"owner"`
}

func (s *schema) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, s)
}
func (s *schema) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, s)
}

func (s *schema) Run(ctx context.Context, h *host.Host, statements []string) error {
	return s.runIn(ctx, h, s.DBName, statements)
}

func (s *schema) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	owner, ok, err := s.one(ctx, h, s.DBName,
		"SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = "+client.Quoted(s.Name))
	if err != nil {
		return client.Work{}, err
	}
	if !ok {
		statement := "CREATE SCHEMA " + ident(s.Name)
		if s.Owner != "" {
			statement += " AUTHORIZATION " + ident(s.Owner)
		}
		return client.Created("schema", s.Name, statement), nil
	}
	w := client.Work{Fine: "the schema " + s.Name + " is as declared", Would: "change the schema " + s.Name}
	if s.Owner != "" && s.Owner != owner {
		w.Statements = []string{fmt.Sprintf("ALTER SCHEMA %s OWNER TO %s", ident(s.Name), ident(s.Owner))}
		w.Changes = value.NewMap(s.Name, value.NewMap("owner", value.NewMap("old", owner, "new", s.Owner)))
	}
	return w, nil
}

// schemaAbsent implements postgres_schema.absent.
type schemaAbsent struct {
	server
	DBName string `sls:"dbname,required"`
}

func (s *schemaAbsent) Gone() bool { return true }
func (s *schemaAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, s)
}
func (s *schemaAbsent) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, s)
}

func (s *schemaAbsent) Run(ctx context.Context, h *host.Host, statements []string) error {
	return s.runIn(ctx, h, s.DBName, statements)
}

func (s *schemaAbsent) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	_, ok, err := s.one(ctx, h, s.DBName, "SELECT 1 FROM pg_namespace WHERE nspname = "+client.Quoted(s.Name))
	if err != nil || !ok {
		return client.Work{Fine: "there is no schema " + s.Name}, err
	}
	return client.Work{Statements: []string{"DROP SCHEMA " + ident(s.Name)}, Changes: value.NewMap(s.Name, "Absent"),
		Would: "drop the schema " + s.Name}, nil
}
