package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
)

// book reads the ledger for a run that holds the lock. One that cannot be read is kept aside, and
// rebuilt says so.
func (a *Agent) book() (book *ledger.Ledger, rebuilt string, err error) {
	path := a.ledgerPath()
	book, err = ledger.Load(path)
	var corrupt *ledger.Corrupt
	if !errors.As(err, &corrupt) {
		return book, "", err
	}
	if book, err = a.rebuild(); err != nil {
		return nil, "", err
	}
	aside := strings.TrimSuffix(path, ".json") + ".corrupt-" + report.NewID(a.now()) + ".json"
	if err := durable.Rename(path, aside); err != nil {
		return nil, "", fmt.Errorf("keeping the ledger aside: %w", err)
	}
	if err := book.Save(path); err != nil {
		return nil, "", err
	}
	what := "nothing that is deployed was found"
	if book.Good != nil {
		what = "it says that " + book.Good.String() + " is deployed"
	}
	return book, fmt.Sprintf("the ledger could not be read (%v); it is kept as %s and was rebuilt from links and reports: %s", corrupt.Err, a.Layout.Inside(aside), what), nil
}

// readBook reads the ledger for somebody who changes nothing.
func (a *Agent) readBook() (*ledger.Ledger, error) {
	book, err := ledger.Load(a.ledgerPath())
	var corrupt *ledger.Corrupt
	if errors.As(err, &corrupt) {
		return a.rebuild()
	}
	return book, err
}

// rebuild makes a ledger of the reports and the links: a pair that a run made good, and that the
// links still name, is what is deployed. What was quarantined or held is lost, which the worst case
// pays with one more failed deploy that rolls back.
func (a *Agent) rebuild() (*ledger.Ledger, error) {
	ids, err := a.archive().IDs()
	if err != nil {
		return nil, err
	}
	book := &ledger.Ledger{}
	for _, id := range slices.Backward(ids) {
		r, err := a.archive().Load(id)
		if err != nil {
			continue // one report that is broken as well says nothing
		}
		if !a.concerns(r) {
			continue
		}
		if book.Host.Service == "" {
			book.Host.Service, book.Host.Instance = r.Service, r.Instance
		}
		ran := r.Left // and not what the run was asked for, which may be held or quarantined
		if ran == nil {
			ran = r.To // reports of older agents
		}
		if r.Exit != exit.OK || ran == nil || !a.named(*ran) {
			continue
		}
		since := r.Ended
		book.Good, book.Since, book.History = ran, &since, []ledger.Pair{*ran}
		if r.From != nil && !r.From.Same(*ran) {
			book.Previous = r.From
			return book, nil
		}
	}
	return book, nil
}

// named reports whether the links of both projects lead to a pair.
func (a *Agent) named(p ledger.Pair) bool {
	for _, release := range p.Releases() {
		s, err := link.Of(a.project(release.Project)).Read()
		if err != nil || s.Current != release.Dir() {
			return false
		}
	}
	return true
}

// concerns reports whether a report is about what this agent is for, and not about another project
// of the host.
func (a *Agent) concerns(r *report.Report) bool {
	if a.alone != "" {
		return r.Service == a.alone
	}
	service, err := os.Readlink(a.Layout.ServiceLink())
	return err != nil || r.Service == "" || r.Service == filepath.Base(service)
}

// hostBook reads the host's own ledger, whatever this agent is for.
func (a *Agent) hostBook() (*ledger.Ledger, error) {
	host := *a
	host.alone = ""
	return host.readBook()
}
