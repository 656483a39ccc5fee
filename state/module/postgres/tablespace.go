package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// tablespace implements postgres_tablespace.present.
type tablespace struct {
	server
	Directory string     `sls:"directory,required"`
	Options   *value.Map `sls:"options"`
	Owner     string     `sls:"owner"`
}

func (s *tablespace) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, s)
}
func (s *tablespace) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, s)
}

func (s *tablespace) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	rows, err := s.rows(ctx, h, "",
		"SELECT pg_get_userbyid(spcowner), pg_tablespace_location(oid) FROM pg_tablespace WHERE spcname = "+
			client.Quoted(s.Name))
	if err != nil {
		return client.Work{}, err
	}
	if len(rows) == 0 {
		statement := "CREATE TABLESPACE " + ident(s.Name)
		if s.Owner != "" {
			statement += " OWNER " + ident(s.Owner)
		}
		statement += " LOCATION " + client.Quoted(s.Directory)
		var options []string
		for key, v := range s.Options.All() {
			options = append(options, ident(value.Str(key))+" = "+client.Quoted(value.Str(v)))
		}
		if len(options) > 0 {
			statement += " WITH (" + strings.Join(options, ", ") + ")"
		}
		return client.Created("tablespace", s.Name, statement), nil
	}
	if rows[0][1] != s.Directory {
		return client.Work{}, diag.Database.Hint(fmt.Errorf("the tablespace %s is in %s and cannot move to %s", s.Name,
			rows[0][1], s.Directory), "make another one, and move what is in it")
	}
	w := client.Work{Fine: "the tablespace " + s.Name + " is as declared", Would: "change the tablespace " + s.Name}
	if s.Owner != "" && s.Owner != rows[0][0] {
		w.Statements = []string{fmt.Sprintf("ALTER TABLESPACE %s OWNER TO %s", ident(s.Name), ident(s.Owner))}
		w.Changes = value.NewMap(s.Name, value.NewMap("owner", value.NewMap("old", rows[0][0], "new", s.Owner)))
	}
	return w, nil
}
