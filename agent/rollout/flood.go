package rollout

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Limits of ReadFlooded: of objects, which are a thousand requests, and of the names of a host that are verified.
const (
	mostInFlood       = 1_000_000
	mostOfHostInFlood = 1000
)

// Flooded is the error of a rollout with more objects than its hosts can have written, so that hosts do not read it.
type Flooded struct{ err error }

// Error returns the message, which names the host with the most objects.
func (f *Flooded) Error() string { return f.err.Error() }

// Unwrap returns the error with its hint. It wraps ErrNoEvidence.
func (f *Flooded) Unwrap() error { return f.err }

// ReadFlooded reads for people what hosts signed in a rollout for which Read returned Flooded. It reads no more than
// the first million objects, and verifies no more than the first thousand names of a host, so results may be missing,
// and hosts must not decide by it.
func (r Rollout) ReadFlooded(ctx context.Context, s store.Store, now time.Time) (Evidence, error) {
	found := r.gathering(now)
	found.most, found.mostOfHost = mostInFlood, mostOfHostInFlood
	for info, err := range s.List(ctx, found.prefix) {
		if err != nil {
			return Evidence{}, fmt.Errorf("reading the results of hosts: %w", err)
		}
		if found.add(info.Key, info.Size, info.Modified) != nil {
			break
		}
	}
	return found.evidence(), nil
}

// flooded returns the error of a rollout with more objects than its hosts can have written.
func (g *gathering) flooded() error {
	worst, most := "hosts that the rollout does not know", g.objects
	for _, n := range g.of {
		most -= n
	}
	for host, n := range g.of {
		if n > most || n == most && host < worst {
			worst, most = host, n
		}
	}
	return &Flooded{diag.Evidence.Hint(fmt.Errorf("%w: below %s there are more than %s, at least %d of them of %s",
		ErrNoEvidence, strings.TrimSuffix(g.prefix, "/"), diag.Count(g.objects-1, "object"), most, worst),
		"%s; the server's log says who writes", g.unflood(worst))}
}

// unflood returns what to do against a flood of objects, of which the most are of worst. Other objects of the rollout
// have to stay: without roster.json it would go no further, and without the results its waves would wait.
func (g *gathering) unflood(worst string) string {
	if g.of[worst] > 0 && worst != deeper {
		return fmt.Sprintf("this host, or a user who may write below its name, floods the store: revoke the rights, and "+
			"remove the objects below %[1]sresults/%[2]s/ and %[1]shalts/%[2]s/, and no others, such as roster.json",
			g.prefix, worst)
	}
	return fmt.Sprintf("no host of the rollout writes such names, so a user who may write below %s does: revoke the "+
		"rights, and remove these objects, and not roster.json or what hosts of the rollout wrote", g.prefix)
}
