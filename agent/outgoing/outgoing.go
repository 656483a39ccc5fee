// Package outgoing makes the copy of a report that may leave the host, without the content of files that not every user
// may read and without what programs printed.
package outgoing

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Filter makes the copy of one report.
type Filter struct {
	Report   *report.Report
	Ledger   *ledger.Ledger // nil for none
	Record   *report.Builder
	Printed  *site.FailedOutput // by programs that failed in the run
	Readable *Readable
}

// notShown replaces text that is not shown outside of the host.
const notShown = "not shown outside of the host"

// Copy returns the report as it may leave the host, to the store and to notifications. No other code decides what may
// leave. A person who may read reports may not be allowed to read the files of this host. So the copy names what
// happened to what, and has neither the content of files that are not readable by every user here, nor the output of
// programs. The report that the host keeps has both.
func (f *Filter) Copy() *report.Report {
	out := *f.Report
	out.Remembered = nil
	var said []string // texts that may have the output of a program, each followed by its replacement
	out.Steps = slices.Clone(out.Steps)
	for i := range out.Steps {
		said = append(said, f.step(&out.Steps[i])...)
	}
	out.Hooks = maps.Clone(out.Hooks)
	for stage, results := range out.Hooks {
		out.Hooks[stage] = hooks(results)
	}
	out.Units, out.Health = slices.Clone(out.Units), slices.Clone(out.Health)
	said = append(said, units(out.Units)...)
	said = append(said, probes(out.Health)...)
	if out.Output != "" {
		out.Output = notShown
	}
	out.Notes, out.Stages, out.Quarantined = slices.Clone(out.Notes), slices.Clone(out.Stages),
		slices.Clone(out.Quarantined)
	said = append(said, firstLines(said)...)
	said = append(said, f.reasons(out.Quarantined)...)
	within := strings.NewReplacer(said...)
	out.Error, out.Hint = within.Replace(out.Error), within.Replace(out.Hint)
	redact.Each(&out.Notes, within.Replace)
	redact.Each(&out.Stages, within.Replace)
	redact.Each(&out.Quarantined, within.Replace)
	return &out
}

// firstLines returns the first line of each text of several lines, followed by its replacement: a quarantine keeps only
// the first line of its reason.
func firstLines(said []string) (first []string) {
	for i := 0; i+1 < len(said); i += 2 {
		if line, _, several := strings.Cut(strings.TrimSpace(said[i]), "\n"); several && line != "" {
			first = append(first, line, said[i+1])
		}
	}
	return first
}

// reasons returns the reasons for which earlier runs quarantined or postponed releases, each followed by its
// replacement. Such a reason may quote the output of a program, and only the run that started the program knows which
// part of the reason does.
func (f *Filter) reasons(quarantined []report.Quarantined) (said []string) {
	earlier := func(reason, run string) {
		reason = strings.TrimSpace(reason)
		if reason != "" && run != f.Report.ID && reason != ledger.ByHand && !f.again(reason) {
			said = append(said, reason, "why is "+notShown)
		}
	}
	for _, q := range quarantined {
		earlier(q.Reason, q.Run)
	}
	if f.Ledger == nil {
		return said
	}
	for _, b := range f.Ledger.Bad {
		earlier(b.Reason, b.Run)
	}
	if p := f.Ledger.Postponed; p != nil {
		earlier(p.Reason, p.Run)
	}
	return said
}

// again reports whether a state of this run failed with the same text as a reason: then this run decides what of it is
// shown.
func (f *Filter) again(reason string) bool {
	return slices.ContainsFunc(f.Report.Steps, func(s report.Step) bool {
		comment := strings.TrimSpace(s.Comment)
		first, _, _ := strings.Cut(comment, "\n")
		words := s.Function + " of " + s.ID + " failed: "
		return s.Result == report.StepFailed && comment != "" && (reason == words+comment || reason == words+first)
	})
}

// step removes private content from a step. It returns the removed text and its replacement, since the text may also be
// elsewhere in the report.
func (f *Filter) step(s *report.Step) (said []string) {
	open, file := f.isOpen(*s), ""
	if filepath.IsAbs(s.Name) {
		file = s.Name
	}
	s.Changes, _ = shown(s.Changes, func(file string) bool { return open && (file == "" || f.Readable.ByEveryUser(file)) },
		file).(*value.Map)
	if s.Result == report.StepFailed && s.Comment != "" && (!open || f.Printed.QuotedIn(s.Comment, f.Record.Show)) {
		what := "its output is " + notShown
		said = []string{s.Comment, what}
		s.Comment = what
	}
	return said
}

// isOpen reports whether every user may see the comment and the changes of a state: the state is about packages,
// services and the like, or about a file that every user could read before and after it.
func (f *Filter) isOpen(s report.Step) bool {
	family, _, _ := strings.Cut(s.Function, ".")
	if filepath.IsAbs(s.Name) {
		return family != "cmd" && f.Readable.ByEveryUser(s.Name)
	}
	return slices.Contains(openFamilies(), family)
}

// openFamilies returns the families of states whose changes are names, versions, modes and states of things. The
// changes of other families may be content, such as an environment, a crontab or an answer.
func openFamilies() []string {
	return []string{
		"alternatives", "archive", "file", "gem", "git", "group", "host", "kmod", "locale", "lvm", "mount", "network", "npm",
		"pip", "pkg", "pkgrepo", "selinux", "service", "sysctl", "test", "timezone", "user", "virtualenv",
	}
}

// plain reports whether the value of a key of changes is never content, for any state.
func plain(key string) bool {
	return slices.Contains([]string{"mode", "user", "group", "pid", "retcode", "ctime", "mtime", "size"}, key)
}

// shown returns a state's changes without content that may not leave the host. Changes of several files name each file,
// and everything below such a name belongs to that file. file is "" for changes of no file; a text of several lines may
// then be content.
func shown(v any, open func(file string) bool, file string) any {
	m, ok := v.(*value.Map)
	if !ok || m == nil {
		if text, isText := v.(string); v == nil || open(file) && (file != "" || !isText || !strings.Contains(text, "\n")) {
			return v
		}
		return notShown
	}
	out := value.NewMap()
	for _, key := range m.Keys() {
		name, of := value.Str(key), file
		if filepath.IsAbs(name) {
			of = name
		}
		item, _, _ := m.GetKey(key)
		switch {
		case plain(name):
		case name == "stdout" || name == "stderr":
			if item != "" {
				item = notShown
			}
		default:
			item = shown(item, open, of)
		}
		_ = out.SetKey(key, item) // a key of a mapping is a valid key
	}
	return out
}

func hooks(results []hook.Result) []hook.Result {
	results = slices.Clone(results)
	for i := range results {
		if results[i].Output != "" {
			results[i].Output = notShown
		}
	}
	return results
}

// units replaces the errors of units, which may quote the journal of a unit.
func units(units []service.Result) (said []string) {
	for i := range units {
		if units[i].Error != "" {
			what := units[i].Unit + " failed; why is " + notShown
			said = append(said, units[i].Error, what)
			units[i].Error = what
		}
	}
	return said
}

// probes replaces the output of scripts that probe a release, and errors that quote the answer of a server.
func probes(probes []health.Result) (said []string) {
	for i := range probes {
		if probes[i].Error != "" && (strings.HasPrefix(probes[i].Probe, recipe.ProbeScript+" ") ||
			quotesAnswer(probes[i].Error)) {
			what := "it failed; its output is " + notShown
			said = append(said, probes[i].Error, what)
			probes[i].Error = what
		}
	}
	return said
}

// quotesAnswer reports whether the error of a probe quotes what a server answered, as net/http does with an answer that
// is malformed. The text for which a probe looks is in the signed release.
func quotesAnswer(text string) bool {
	return strings.Contains(text, `"`) && !strings.HasPrefix(text, "the answer does not contain ")
}
