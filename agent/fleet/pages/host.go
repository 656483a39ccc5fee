package pages

import (
	"cmp"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// fact is a line about a host or a run.
type fact struct {
	Name, Text, Href string
	Mono             bool
}

type hostPage struct {
	common
	Host                             fleet.Host
	Class, Says, Error, Hint, NoRuns string
	Facts                            []fact
	Runs                             []runView
}

// host writes the page of a host and, if they are requested, those of its newest runs.
func (w *writer) host(h fleet.Host, detailed bool) error {
	page := hostPage{
		common: w.common(h.Host+" - Fleet", "../../", step{h.Project, "../../project/" + h.Project + "/index.html"},
			step{Text: h.Host}),
		Host: h, Class: class(string(h.State)), Says: says(h), Facts: hostFacts(h),
		NoRuns: "The store has no report of this host.",
	}
	if !detailed {
		page.NoRuns = "Reports are shown of the hosts that need a person first (corpus fleet --html --reports)."
		return w.page(w.ctx, "host/"+h.Host+"/index.html", "host", page)
	}
	if h.State != fleet.Healthy {
		detail, err := hostrecord.Read(w.ctx, w.site.Store, w.site.View.Known, h.Listed)
		if err != nil {
			return err
		}
		page.Error, page.Hint = shown(detail.Error), shown(detail.Hint)
	}
	runs, err := fleet.Runs(w.ctx, w.site.Store, w.site.View.Known, h.Listed)
	if err != nil {
		return err
	}
	for _, r := range runs {
		shows := newRunView(r)
		page.Runs = append(page.Runs, shows)
		if err := w.run(h, shows); err != nil {
			return err
		}
	}
	return w.page(w.ctx, "host/"+h.Host+"/index.html", "host", page)
}

// says describes the state of a host in a few words.
func says(h fleet.Host) string {
	words := []string{string(h.State)}
	for _, more := range []struct {
		is   bool
		what string
	}{
		{h.Held && h.State != fleet.Held, "held"}, {h.Behind, "behind its channel"}, {h.Silent, "silent"},
		{h.Withdrawn, "has a withdrawn release"}, {!h.Signed, "without a registered key"},
		{h.Conflicts > 0, "several keys for its name"}, {h.OtherRoot, "below another root"},
		{h.Expiring, "signatures of the store expire soon"},
	} {
		if more.is {
			words = append(words, more.what)
		}
	}
	return strings.Join(words, ", ")
}

func hostFacts(h fleet.Host) []fact {
	facts := []fact{{Name: "Project", Text: h.Project, Href: "../../project/" + h.Project + "/index.html"}}
	add := func(name string, p *hostrecord.Place, project string) {
		if p == nil {
			return
		}
		text := project + " " + cmp.Or(p.Version, "none")
		if p.Digest != "" {
			text += " (" + shown(p.Digest) + ")"
		}
		if p.Channel != "" {
			text += " of " + p.Channel
		}
		facts = append(facts, fact{Name: name, Text: text, Mono: true})
	}
	add("Has", h.Service, h.Project)
	add("Has", h.Base, artifact.Base)
	add("Was to have", h.Wanted, h.Project)
	add("Was to have", h.WantedBase, artifact.Base)
	run := shown(strings.ReplaceAll(h.Outcome, "-", " ")) + ", started " + stamp(h.Started())
	if h.Unbegun {
		run = "could not begin, or not write to its disk, at " + stamp(h.Seen)
	}
	return append(facts,
		fact{Name: "Newest run", Text: run},
		fact{Name: "Reported", Text: stamp(h.Seen)},
		fact{Name: "Agent", Text: shown(cmp.Or(h.Agent, "unknown"))})
}
