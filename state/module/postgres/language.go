package postgres

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
)

// language implements postgres_language.present.
type language struct{ server }

func (l *language) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, l)
}
func (l *language) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, l)
}

func (l *language) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	_, ok, err := l.one(ctx, h, "", languages().find+client.Quoted(l.Name))
	if err != nil || ok {
		return client.Work{Fine: "the language " + l.Name + " is there"}, err
	}
	return client.Created("language", l.Name, "CREATE LANGUAGE "+ident(l.Name)), nil
}
