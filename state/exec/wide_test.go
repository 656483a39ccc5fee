package exec_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// cloud has two state functions: thing.made, of which several may run at once, and thing.alone.
type cloud struct {
	mu      sync.Mutex
	created int            // resources that were created
	running int            // resources whose Apply runs now
	most    int            // the largest value of running
	crowded bool           // another Apply ran beside that of thing.alone
	order   []string       // names, in the order in which Apply ended
	meeting sync.WaitGroup // resources with meet: true wait until all of them have begun
	looked  sync.WaitGroup // and until those with look have looked
	begun   int            // resources whose Apply began
	began   func(n int)    // called with begun; may be nil
}

type thing struct {
	cloud *cloud
	Name  string `sls:"name"`
	Uses  []any  `sls:"uses"`
	Meet  bool   `sls:"meet"`
	Fail  bool   `sls:"fail"`
	Slow  bool   `sls:"slow"` // Apply takes some time
	Panic bool   `sls:"panic"`
	Look  string `sls:"look"` // a path that Apply looks at, and whose error it ignores
	alone bool
}

// parallelThing is a thing that may run beside others.
type parallelThing struct{ thing }

func (*parallelThing) RunsBeside() {}

func (t *thing) Check(context.Context, *host.Host) (module.Diff, error) {
	return module.Diff{Changes: value.NewMap("made", t.Name)}, nil
}

func (t *thing) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	c := t.cloud
	c.mu.Lock()
	c.running++
	c.most = max(c.most, c.running)
	if c.begun++; c.began != nil {
		c.began(c.begun)
	}
	c.crowded = c.crowded || t.alone && c.running > 1
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
		c.order = append(c.order, t.Name)
	}()
	if t.Meet {
		c.meeting.Done()
		met := make(chan struct{})
		go func() { c.meeting.Wait(); close(met) }()
		select {
		case <-met:
		case <-time.After(20 * time.Second):
			return module.Report{}, errors.New("the others did not begin")
		}
	}
	if t.Panic {
		panic("no answer")
	}
	if t.Slow {
		time.Sleep(50 * time.Millisecond)
	}
	if t.Look != "" {
		_, _ = h.Files.Stat(t.Look)
		c.looked.Done()
	}
	if t.Meet {
		c.looked.Wait()
	}
	if t.Fail {
		return module.Report{}, errors.New("this thing fails")
	}
	return module.Report{Changes: d.Changes}, ctx.Err()
}

func (c *cloud) Reading(function.Facts) function.Table { return function.Table{} }

func (c *cloud) Acting(function.Facts) function.Table { return function.Table{} }

func (c *cloud) Filters(*function.Facts) map[string]jinja.Filter { return nil }

func (c *cloud) States(*session.Session) module.Registry {
	return module.Registry{"thing": module.Table{
		"made": func() module.Resource {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.created++
			return &parallelThing{thing{cloud: c}}
		},
		"alone": func() module.Resource { return &thing{cloud: c, alone: true} },
	}}
}

// run runs up to parallel steps of an SLS at once. It returns a line for each result, in the order of the report.
func (c *cloud) run(t *testing.T, parallel int, sls string) (lines []string) {
	t.Helper()
	for _, r := range c.results(t, parallel, sls) {
		line := strings.TrimSpace(r.Name() + " " + value.Repr(r.Changes))
		if strings.Contains(r.Comment, "refused, since") {
			line += " failed"
		}
		lines = append(lines, line)
	}
	return lines
}

// results runs up to parallel steps of an SLS at once, and returns their results in the order of the report.
func (c *cloud) results(t *testing.T, parallel int, sls string) []*exec.Result {
	t.Helper()
	return c.resultsWithin(context.Background(), t, parallel, sls)
}

// resultsWithin is like results for a run that ctx may cancel.
func (c *cloud) resultsWithin(ctx context.Context, t *testing.T, parallel int, sls string) []*exec.Result {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "t.sls"), []byte(sls), 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(host.Options{}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	s := session.New(session.Settings{Host: h, ID: "w", Grains: value.NewMap(), Tables: c, Parallel: parallel,
		States: []roots.Env{{Name: "base", Dirs: []string{dir}}}})
	program, err := s.Program(context.Background(), s.Named("t"))
	if err != nil {
		t.Fatal(err)
	}
	return s.Run(ctx, program, nil).All()
}

// TestParallelStepsAreLimited checks that steps run at the same time, and no more of them than Parallel.
func TestParallelStepsAreLimited(t *testing.T) {
	c := &cloud{}
	c.meeting.Add(3)
	lines := c.run(t, 3, `
a: {thing.made: [meet: true]}
b: {thing.made: [meet: true]}
c: {thing.made: [meet: true]}
d: {thing.made: []}
e: {thing.made: []}
`)
	want := []string{"a {'made': 'a'}", "b {'made': 'b'}", "c {'made': 'c'}", "d {'made': 'd'}", "e {'made': 'e'}"}
	if !slices.Equal(lines, want) || c.most != 3 {
		t.Errorf("the report is %v, and %d ran at once", lines, c.most)
	}
}

// TestCancelledParallelRunBeginsNoMore cancels a run with more independent steps than may run at once. Those that run
// end, and the others are not begun and have no result.
func TestCancelledParallelRunBeginsNoMore(t *testing.T) {
	c := &cloud{}
	ctx, cancel := context.WithCancel(t.Context())
	c.began = func(n int) {
		if n == 2 {
			cancel()
		}
	}
	text := ""
	for _, name := range strings.Fields("a b c d e f g h") {
		text += name + ": {thing.made: [slow: true]}\n"
	}
	results := c.resultsWithin(ctx, t, 2, text)
	if c.begun != len(results) || len(results) != 2 {
		t.Errorf("after the cancellation %d steps ran, and %d have results", c.begun, len(results))
	}
}

// TestRefusalsOfParallelStepsAreTheirOwn runs two steps at once, of which one follows a link that any user could have
// made. The other one does not fail.
func TestRefusalsOfParallelStepsAreTheirOwn(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.WriteFile(dir+"/f", nil, 0o600), os.Mkdir(open, 0o755), os.Chmod(open, 0o777),
		os.Symlink(dir+"/f", open+"/link")); err != nil {
		t.Fatal(err)
	}
	c := &cloud{}
	c.meeting.Add(2)
	c.looked.Add(1)
	lines := c.run(t, 2, "a: {thing.made: [meet: true, look: "+open+"/link]}\nb: {thing.made: [meet: true]}\n")
	if want := []string{"a {'made': 'a'} failed", "b {'made': 'b'}"}; !slices.Equal(lines, want) {
		t.Errorf("the report is %q, want %q", lines, want)
	}
}

// TestParallelStepsWaitForRequisites checks that a step waits for its requisites and for the steps that its arguments
// name, that a step that must run alone does so, and that the report has the order of the SLS.
func TestParallelStepsWaitForRequisites(t *testing.T) {
	c := &cloud{}
	lines := c.run(t, 8, `
late: {thing.made: [{require: [thing: first]}]}
named: {thing.made: [uses: ['arn:of:late']]}
first: {thing.made: []}
by itself: {thing.alone: []}
after: {thing.made: [uses: [named]]}
`)
	before := func(x, y string) bool { return slices.Index(c.order, x) < slices.Index(c.order, y) }
	if !before("first", "late") || !before("late", "named") || !before("named", "after") ||
		!before("named", "by itself") ||
		!before("by itself", "after") || c.crowded {
		t.Errorf("the order is %v; another step ran beside thing.alone: %v", c.order, c.crowded)
	}
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "late ") || !strings.HasPrefix(lines[4], "after ") {
		t.Errorf("the report is %v", lines)
	}
}

// TestParallelRunContinuesAfterFailures checks that a failure stops only the steps that require the failed one.
func TestParallelRunContinuesAfterFailures(t *testing.T) {
	c := &cloud{}
	lines := c.run(t, 8, `
bad: {thing.made: [fail: true]}
needs: {thing.made: [{require: [thing: bad]}]}
other: {thing.made: []}
`)
	if want := []string{"bad {}", "needs {}", "other {'made': 'other'}"}; !slices.Equal(lines, want) {
		t.Errorf("the report is %v", lines)
	}
	if slices.Contains(c.order, "needs") {
		t.Error("a step ran whose requisite failed")
	}
}

// TestListenersOfAParallelRunAreLast checks that a parallel run reports its listeners where a run in order does.
func TestListenersOfAParallelRunAreLast(t *testing.T) {
	const sls = `
a: {thing.made: []}
b: {thing.made: [{listen: [thing: a]}]}
c: {thing.made: [{listen: [thing: a]}]}
d: {thing.made: []}
`
	want := (&cloud{}).run(t, 1, sls)
	if got := (&cloud{}).run(t, 8, sls); !slices.Equal(got, want) || len(got) != 6 {
		t.Errorf("the report is %q, and that of a run in order %q", got, want)
	}
}

// TestParallelDecisionIsCached checks that the run decides once for each function whether its steps may run in
// parallel.
func TestParallelDecisionIsCached(t *testing.T) {
	c, text := &cloud{}, strings.Builder{}
	for i := range 40 {
		text.WriteString("s" + strings.Repeat("x", i) + ": {thing.made: []}\n")
	}
	serial := &cloud{}
	serial.run(t, 1, text.String())
	if c.run(t, 8, text.String()); c.created > serial.created+1 {
		t.Errorf("%d resources are created, and %d in a run without parallel steps", c.created, serial.created)
	}
}

// TestRequisitesCountBeforeNames checks that a step that requires a later one runs after it, even if the later one has
// its name in an argument, and that independent steps run beside them.
func TestRequisitesCountBeforeNames(t *testing.T) {
	c := &cloud{}
	c.meeting.Add(2)
	c.run(t, 4, `
a: {thing.made: [require: [{thing: b}]]}
b: {thing.made: [uses: [text of a], meet: true]}
c: {thing.made: [require: [{thing: d}]]}
d: {thing.made: [uses: [text of c], meet: true]}
`)
	if c.most != 2 || slices.Index(c.order, "a") < slices.Index(c.order, "b") ||
		slices.Index(c.order, "c") < slices.Index(c.order, "d") {
		t.Errorf("at most %d steps ran at once, in the order %v", c.most, c.order)
	}
}

// TestNamesOfAResourceCount checks that a step waits for an earlier one that it names by another of its names: with or
// without the dot of a domain, by an argument that names the resource, or by the tag Name.
func TestNamesOfAResourceCount(t *testing.T) {
	for first, name := range map[string]string{
		"zone.example.com.: {thing.made: [slow: true]}":                  "zone.example.com",
		"zone.example.com: {thing.made: [slow: true]}":                   "zone.example.com.",
		"z: {thing.made: [slow: true, domain_name: other.example.com.]}": "other.example.com",
		"z: {thing.made: [slow: true, tags: {Name: called}]}":            "called",
	} {
		c := &cloud{}
		if c.run(t, 4, first+"\nuser: {thing.made: [uses: ["+name+"]]}\n"); c.most != 1 {
			t.Errorf("%s: a step that names %s does not wait", first, name)
		}
	}
}
