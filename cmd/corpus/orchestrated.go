package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// orchestrated has the results of one pass.
type orchestrated struct {
	dry     bool
	list    []*exec.Result
	all     int // steps of the program; those without a result were not begun
	started time.Time
	took    time.Duration
}

func changesOf(r *exec.Result) *value.Map {
	if r.Outcome == exec.Pending && r.Predicted.Len() > 0 {
		return r.Predicted
	}
	return r.Changes
}

// sign returns + for a resource that is created, - for one that is deleted, ~ for one that changes, ! for a failure,
// and = otherwise.
func sign(r *exec.Result) string {
	changes := changesOf(r)
	old, hasOld := changes.Get("old")
	new, hasNew := changes.Get("new")
	switch {
	case r.Fails():
		return "!"
	case changes.Len() == 0 && r.Outcome != exec.Pending:
		return "="
	case hasOld && hasNew && old == nil:
		return "+"
	case hasOld && hasNew && new == nil:
		return "-"
	}
	return "~"
}

// count counts the results by their signs.
func (o *orchestrated) count() map[string]int {
	n := map[string]int{}
	for _, r := range o.list {
		n[sign(r)]++
	}
	return n
}

func (o *orchestrated) wouldChange() bool {
	n := o.count()
	return n["+"]+n["-"]+n["~"] > 0
}

func (o *orchestrated) failures() int { return o.count()["!"] }

// deletions returns the names of the resources that the plan deletes.
func (o *orchestrated) deletions() (names []string) {
	for _, r := range o.list {
		if sign(r) == "-" {
			names = append(names, r.Step.State()+" "+trust.Printable(nameAtAWS(r)))
		}
	}
	return names
}

// nameAtAWS returns the name of the resource that a state deletes, as the plan shows it: the first field.
func nameAtAWS(r *exec.Result) string {
	old, _ := changesOf(r).Value("old").(*value.Map)
	if names := old.Names(); len(names) > 0 {
		return value.Str(old.Value(names[0]))
	}
	return r.Name()
}

// plan prints the planned changes.
func (o *orchestrated) plan(w io.Writer) {
	for _, r := range o.list {
		s := sign(r)
		if s == "=" && len(r.Warnings) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s %s %s\n", s, r.Step.Function(), trust.Printable(r.Name()))
		fields(w, changesOf(r))
		if s == "!" || r.Unknown {
			fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(r.Comment, "\n", "\n    "))
		}
		if s == "!" && r.Hint != "" {
			fmt.Fprintf(w, "    hint: %s\n", r.Hint)
		}
		for _, warning := range r.Warnings {
			fmt.Fprintf(w, "    warning: %s\n", warning)
		}
	}
}

// failed prints the states that failed or have warnings.
func (o *orchestrated) failed(w io.Writer) {
	var list []*exec.Result
	for _, r := range o.list {
		if r.Fails() || len(r.Warnings) > 0 {
			list = append(list, r)
		}
	}
	(&orchestrated{list: list}).plan(w)
}

// show prints the plan, or after a run the failed states, and a line with the numbers of changes.
func (o *orchestrated) show(w io.Writer) {
	if o.dry {
		o.plan(w)
	} else {
		o.failed(w)
	}
	n := o.count()
	verb := [3]string{"made", "changed", "deleted"}
	if o.dry {
		verb = [3]string{"to make", "to change", "to delete"}
	}
	fmt.Fprintf(w, "%d as declared, %d %s, %d %s, %d %s, %d failed%s in %.1fs\n", n["="], n["+"], verb[0], n["~"], verb[1],
		n["-"], verb[2], n["!"], o.rest(), o.took.Seconds())
	if o.dry && o.rest() != "" {
		fmt.Fprintln(w, "the plan is incomplete: it was interrupted")
	}
}

// rest says how many states were not begun, if any.
func (o *orchestrated) rest() string {
	if left := o.all - len(o.list); left > 0 {
		return fmt.Sprintf(", %d not begun", left)
	}
	return ""
}

// fields prints each field that changes.
func fields(w io.Writer, changes *value.Map) {
	old, _ := changes.Value("old").(*value.Map)
	new, _ := changes.Value("new").(*value.Map)
	names := old.Names()
	for _, name := range new.Names() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		switch {
		case old == nil:
			fmt.Fprintf(w, "    + %s: %s\n", name, short(new.Value(name)))
		case new == nil:
			fmt.Fprintf(w, "    - %s: %s\n", name, short(old.Value(name)))
		default:
			differing(w, name, old.Value(name), new.Value(name))
		}
	}
	if done, ok := changes.Value("done").(*value.List); ok {
		for _, item := range done.Items {
			fmt.Fprintf(w, "    done: %s\n", value.Str(item))
		}
	}
}

// differing prints a field that changes. Of long mappings and lists it prints what differs: the rest would hide it.
func differing(w io.Writer, name string, old, new any) {
	if len(value.Repr(old))+len(value.Repr(new)) > longest {
		switch before := old.(type) {
		case *value.Map:
			if after, ok := new.(*value.Map); ok && before.Len() > 0 && after.Len() > 0 {
				differingKeys(w, name, before, after)
				return
			}
		case *value.List:
			if after, ok := new.(*value.List); ok && before.Len() > 0 && after.Len() > 0 {
				differingItems(w, name, before, after)
				return
			}
		}
	}
	before, after := apart([]rune(value.Repr(old)), []rune(value.Repr(new)))
	fmt.Fprintf(w, "    ~ %s: %s -> %s\n", name, before, after)
}

// apart returns two texts as they are shown. Of long ones it leaves out the beginning that they have in common.
func apart(old, new []rune) (before, after string) {
	same := 0
	for same < min(len(old), len(new)) && old[same] == new[same] {
		same++
	}
	const context = 40
	if skip := same - context; skip > 0 && max(len(old), len(new)) > longest {
		return "…" + cutShort(old[skip:]), "…" + cutShort(new[skip:])
	}
	return cutShort(old), cutShort(new)
}

func differingKeys(w io.Writer, name string, old, new *value.Map) {
	for _, key := range old.Names() {
		after, there := new.Get(key)
		switch v := old.Value(key); {
		case !there:
			fmt.Fprintf(w, "    - %s.%s: %s\n", name, key, short(v))
		case !value.Equal(v, after):
			differing(w, name+"."+key, v, after)
		}
	}
	for _, key := range new.Names() {
		if !old.Has(key) {
			fmt.Fprintf(w, "    + %s.%s: %s\n", name, key, short(new.Value(key)))
		}
	}
}

// differingItems prints the items that only one of two lists has. An item that takes the place of another one, as the
// only difference, is compared with it.
func differingItems(w io.Writer, name string, old, new *value.List) {
	gone, come := lacking(old, new), lacking(new, old)
	if len(gone) == 1 && len(come) == 1 {
		differing(w, name, gone[0], come[0])
		return
	}
	if len(gone)+len(come) == 0 { // another order
		fmt.Fprintf(w, "    ~ %s: %s -> %s\n", name, short(old), short(new))
	}
	for _, v := range gone {
		fmt.Fprintf(w, "    - %s: %s\n", name, short(v))
	}
	for _, v := range come {
		fmt.Fprintf(w, "    + %s: %s\n", name, short(v))
	}
}

// lacking returns the items of a list that another one lacks.
func lacking(list, other *value.List) (items []any) {
	for _, v := range list.Items {
		if !slices.ContainsFunc(other.Items, func(o any) bool { return value.Equal(v, o) }) {
			items = append(items, v)
		}
	}
	return items
}

// longest is the maximum length, in characters, of a value in a plan.
const longest = 200

func short(v any) string { return cutShort([]rune(value.Repr(v))) }

func cutShort(text []rune) string {
	if len(text) > longest {
		return string(text[:longest]) + "…"
	}
	return string(text)
}

// document returns the report as a mapping.
func (o *orchestrated) document() *value.Map {
	results := value.NewMap()
	for _, r := range o.list {
		m := r.Map()
		m.Set("changes", changesOf(r))
		m.Set("action", map[string]string{"+": "make", "-": "delete", "~": "change", "!": "fail", "=": "none"}[sign(r)])
		results.Set(r.ShownTag(), m)
	}
	return value.NewMap("started", o.started.UTC().Format(time.RFC3339), "seconds", o.took.Seconds(), "test", o.dry,
		"not_begun", max(0, o.all-len(o.list)), "results", results)
}

// reportName is the name of a report, as a layout of its time.
const reportName = "20060102T150405.000000000Z.json"

// keptReports is the number of reports that are kept.
const keptReports = 100

// keep writes the report below the user's state directory, and returns its path.
func (o *orchestrated) keep(getenv func(string) string) (string, error) {
	base := getenv("XDG_STATE_HOME")
	if base == "" && getenv("HOME") != "" {
		base = filepath.Join(getenv("HOME"), ".local", "state")
	}
	if !filepath.IsAbs(base) {
		return "", nil
	}
	dir := filepath.Join(base, "corpus", "orchestrate")
	if err := ownPlace(dir); err != nil {
		return "", err
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	text, err := value.Dumps(o.document(), value.JSONOptions{})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, o.started.UTC().Format(reportName))
	if err := durable.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		return "", err
	}
	return file, prune(dir)
}

// prune removes the oldest reports. Other files in the directory stay.
func prune(dir string) error {
	entries, err := os.ReadDir(dir) // sorted by name, which begins with the time
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		_, err := time.Parse(reportName, e.Name())
		return err != nil
	})
	for len(entries) > keptReports {
		if err := durable.Remove(filepath.Join(dir, entries[0].Name())); err != nil {
			return err
		}
		entries = entries[1:]
	}
	return nil
}

// progress prints each state when it ends, with its duration.
type progress struct {
	out  io.Writer
	mu   sync.Mutex
	all  int
	done int
}

// StepStarted is part of exec.Observer.
func (*progress) StepStarted(*compile.Step) {}

// StepDone is part of exec.Observer.
func (p *progress) StepDone(r *exec.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	fmt.Fprintf(p.out, "[%d/%d] %6.1fs  %s %s %s\n", p.done, p.all, r.Duration.Seconds(), sign(r), r.Step.Function(),
		trust.Printable(r.Name()))
}
