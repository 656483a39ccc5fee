package exec

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	files "github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// declarations has what the steps of a run have declared so far, by path. It is safe for concurrent use.
//
// A host keeps what declared paths hold as well, see [host.Host.NoteDeclared], in a table that cannot serve both:
//
//   - A step that undoes what an earlier one declares replaces the host's entry while it runs. What the earlier step
//     declares, and which step that was, is needed after that, to compare the two.
//   - The host's entries say what is on the disk now, so a command ends them. A contradiction of two states stays one
//     whatever ran between them.
//   - In a dry run nothing changes on the host, and contradictions are found as well.
//
// [try.declare] is the only function that writes to both.
type declarations struct {
	mu  sync.Mutex
	all map[string]declarer
}

// declarer is the last step that declares what is at a path.
type declarer struct {
	step *compile.Step // nil if there is none
	declaration
}

func (d *declarations) at(p string) declarer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[p]
}

func (d *declarations) note(p string, by declarer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[string]declarer{}
	}
	d.all[p] = by
}

// contradicts reports whether a step that has succeeded, and declares d at a path, has undone what a step before it
// declares there, so that the step before would fail or undo this one in the next run. Steps that may not run the next
// time contradict nothing. In a dry run only those pairs of kinds count that no link can satisfy both.
func (t try) contradicts(h *host.Host, p string, before declarer, d declaration) bool {
	switch {
	case before.step == nil, before.nothing, d.nothing, before.kind == d.kind, mayNotRun(before.step),
		t.dry && mayNotRun(t.step):
		return false
	case before.kind != fs.ModeSymlink && d.kind != fs.ModeSymlink:
		return true
	case t.dry, !h.RootDecides(p):
		return false // users may exchange the link, and no release is at fault for that
	case before.kind == fs.ModeSymlink:
		info, err := h.Files.Lstat(p)
		return err == nil && !info.IsLink()
	}
	return !throughLink(before.step) || t.leadsElsewhere(h, p, before, d)
}

// leadsElsewhere reports whether a link that a step declares leads to another kind of object than a step before it
// declares at the path of the link.
func (t try) leadsElsewhere(h *host.Host, p string, before declarer, d declaration) bool {
	target := d.target
	if !path.IsAbs(target) {
		target = path.Join(path.Dir(p), target)
	}
	if target = path.Clean(target); !h.RootDecides(target) {
		return false
	}
	info, err := h.Files.Stat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return before.kind == fs.ModeDir && !t.declaredBelow(target)
	}
	return err == nil && info.Mode.Type() != before.kind
}

// declaredBelow reports whether a step of the program declares an object at a path, or below it.
func (t try) declaredBelow(p string) bool {
	return slices.ContainsFunc(t.steps, func(s *compile.Step) bool {
		d, found := declarationOf(s)
		at, _ := s.Chunk.Value(d.argument).(string)
		return found && !d.nothing && strings.HasPrefix(path.Clean(at)+"/", p+"/")
	})
}

// throughLink reports whether a step is satisfied by a link that leads to what it declares.
func throughLink(s *compile.Step) bool {
	given := func(name string, value bool) bool { return s.Chunk.Value(name) == value }
	if s.Function() == "file.directory" {
		return !given("allow_symlink", false) && !value.Truth(s.Chunk.Value("force"))
	}
	return !given("follow_symlinks", false)
}

// contradict fails a step that has undone what a step before it declares at a path.
func (r *Result) contradict(p string, before declarer, d declaration) {
	r.fail(diag.Contradiction.Hint(diag.At(r.Step.Pos, "%s (%s) declares %s at %s, and %s (%s%s), which ran before it, "+
		"declares %s there: the two states contradict each other", r.Step.ID(), r.Step.Function(), files.TypeName(d.kind),
		files.Clip(p), before.step.ID(), before.step.Function(), placeOf(before.step), files.TypeName(before.kind)),
		"remove one of the two states, or give one of them another path"), r.Changes)
	r.Unknown, r.Predicted = false, value.NewMap()
}

func placeOf(s *compile.Step) string {
	if s.Pos.IsZero() {
		return ""
	}
	return ", " + s.Pos.String()
}
