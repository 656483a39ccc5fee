// Package pages writes static pages about a fleet from the data of a store. The pages work from a directory and from a
// bucket.
//
// They load only their own style sheet and script, which are beside them. Everything that hosts wrote is untrusted
// text: html/template escapes it, its length is limited, and control characters are written out.
package pages

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

//go:embed assets
var assets embed.FS

// Output receives pages. It is used by several goroutines.
type Output interface {
	// Page writes a page. Its name has slashes, and is relative to the first page.
	Page(ctx context.Context, name string, content []byte) error
}

// Site is the data of the pages.
type Site struct {
	View     *fleet.View
	Store    store.Store // of the records and reports of hosts
	Listings []trust.Listing
	// Compare returns the differences between two releases; nil if pages of them are not requested.
	Compare func(ctx context.Context, project, older, newer string) (Comparison, error)
	// Rollouts has the rollouts of all channels that have one.
	Rollouts []Rollout
	// Histories has the moves of channels, by project.
	Histories map[string][]History
	// Detailed is the number of hosts whose reports are read, those that need a person first.
	Detailed int
}

const atOnce = 16 // pages that are made at the same time

// Write writes all pages and returns how many.
func (s Site) Write(ctx context.Context, out Output) (int, error) {
	t, err := parsed()
	if err != nil {
		return 0, err
	}
	w := &writer{site: s, templates: t, out: out}
	w.group, w.ctx = errgroup.WithContext(ctx)
	w.group.SetLimit(atOnce)
	for _, name := range []string{"fleet.css", "fleet.js"} {
		content, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return 0, err
		}
		w.group.Go(func() error { return out.Page(w.ctx, "assets/"+name, content) })
	}
	w.compared = w.comparisons()
	w.overviews()
	order := urgent(s.View)
	for i, h := range order {
		w.group.Go(func() error { return w.host(h, i < s.Detailed) })
	}
	// The first page is written last, when the pages that it links to exist.
	if err := w.group.Wait(); err != nil {
		return 0, err
	}
	return len(order), w.page(ctx, "index.html", "overview", w.overview(""))
}

type writer struct {
	site      Site
	templates *template.Template
	out       Output
	group     *errgroup.Group
	ctx       context.Context //nolint:containedctx // of one call of Write
	compared  map[string]bool // names of pages of comparisons
}

func parsed() (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{
		"count": grouped, "stamp": stamp,
		"line": fleet.Brief, "lines": fleet.BriefLines, "quoted": fleet.Quoted,
	}).ParseFS(assets, "assets/pages.html")
}

// page writes a page from a template.
func (w *writer) page(ctx context.Context, name, kind string, data any) error {
	var b bytes.Buffer
	if err := w.templates.ExecuteTemplate(&b, kind, data); err != nil {
		return fmt.Errorf("making %s: %w", name, err)
	}
	return w.out.Page(ctx, name, b.Bytes())
}

// common has the fields of every page.
type common struct {
	Title string
	Root  string // relative path to the first page
	Trail []step
	At    time.Time
}

// step is a link in the trail of a page.
type step struct{ Text, Href string }

func (w *writer) common(title, root string, trail ...step) common {
	first := step{"Fleet", root + "index.html"}
	if root == "" {
		first.Href = ""
	}
	return common{title, root, append([]step{first}, trail...), w.site.View.At}
}

// stamp formats a time for pages.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// grouped formats a number with its digits in groups of three.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// class returns the style sheet's class of a state, or of the outcome of a run or a step.
func class(word string) string {
	switch word {
	case "converged", "ok", "healthy", Finished:
		return "healthy"
	case "rollback failed", "failed", "interrupted", "wrong key", "conflict", "halted", "stuck", "flooded", fleet.Halted:
		return "failed"
	case "rolled back", "quarantined", "held", "drifted", "silent":
		return strings.ReplaceAll(word, " ", "-")
	case "paused", fleet.Paused:
		return "held"
	case "withdrawn", "aborted":
		return "rolled-back"
	}
	return "other"
}

// longestText bounds the bytes of a host's text on a page.
const longestText = 8 << 10

// shown returns a host's text in the form for a page.
func shown(text string) string {
	if len(text) <= longestText {
		return redact.Controls(text)
	}
	return redact.Controls(strings.ToValidUTF8(text[:longestText], "")) + "\n... (" + diag.Size(int64(len(text))) +
		" in all)"
}

// urgent returns the hosts, those that need a person first.
func urgent(v *fleet.View) []fleet.Host {
	order := fleet.States()
	rank := func(h fleet.Host) int {
		n := 2 * slices.Index(order, h.State)
		if h.Silent || h.Withdrawn || h.Conflicts > 0 {
			n = min(n, 5)
		}
		return n
	}
	out := slices.Clone(v.Hosts)
	slices.SortStableFunc(out, func(a, b fleet.Host) int { return rank(a) - rank(b) })
	return out
}

// version returns the version of a place for a page; "" for nil.
func version(p *hostrecord.Place) string {
	if p == nil {
		return ""
	}
	return p.Version
}
