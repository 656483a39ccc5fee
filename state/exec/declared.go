package exec

import (
	"io/fs"
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// declaration says what is at the path of an argument after a state has succeeded, whatever was there before.
type declaration struct {
	argument string
	kind     fs.FileMode
	nothing  bool   // instead of kind
	target   string // of a symbolic link
}

// declarationOf returns what a state declares at a path; false if it declares no kind of object, or not in each case in
// which it succeeds.
func declarationOf(s *compile.Step) (d declaration, found bool) {
	name := func(kind fs.FileMode) (declaration, bool) { return declaration{argument: "name", kind: kind}, true }
	switch s.Function() {
	case "file.managed", "file.serialize", "file.append", "file.prepend", "file.line", "file.replace",
		"file.blockreplace", "file.comment", "file.uncomment", "file.keyvalue", "file.decode", "ini.options_present",
		"ini.sections_present":
		return name(0)
	case "file.directory", "file.recurse", "archive.extracted", "git.present", "virtualenv.managed":
		return name(fs.ModeDir)
	case "git.latest", "git.cloned", "git.detached":
		return declaration{argument: "target", kind: fs.ModeDir}, true
	case "file.symlink":
		target, _ := s.Chunk.Value("target").(string)
		return declaration{argument: "name", kind: fs.ModeSymlink, target: target}, true
	case "file.mknod":
		kind, known := map[any]fs.FileMode{"p": fs.ModeNamedPipe, "b": fs.ModeDevice,
			"c": fs.ModeDevice | fs.ModeCharDevice}[s.Chunk.Value("ntype")]
		return declaration{argument: "name", kind: kind}, known
	case "file.absent", "file.missing", "file.pruned":
		return declaration{argument: "name", nothing: true}, true
	case "file.rename":
		return declaration{argument: "source", nothing: true}, true
	}
	return declaration{}, false
}

// optionalArguments returns arguments with which a state may succeed without the object that it otherwise declares.
func optionalArguments() []string {
	return []string{"ignore_if_missing", "ignore_missing", "if_missing"}
}

// declares returns what a successful state declares at a path; found is false if it declares nothing in particular. In
// a dry run, a state that would make a change counts as successful.
func (r *Result) declares(dry bool) (d declaration, p string, found bool) {
	if r.Outcome != Succeeded && !(dry && r.Outcome == Pending) || r.Skipped != "" {
		return d, "", false
	}
	d, found = declarationOf(r.Step)
	p, _ = r.Step.Chunk.Value(d.argument).(string)
	made, given := r.Step.Chunk.Value("create").(bool)
	if !found || !path.IsAbs(p) || given && !made && r.Step.Fun() != "line" ||
		slices.ContainsFunc(optionalArguments(), func(a string) bool { return value.Truth(r.Step.Chunk.Value(a)) }) {
		return d, "", false
	}
	return d, path.Clean(p), true
}

// declare notes what a successful state declares at a path, so that a later state of the same run that needs something
// else there is at fault. If it contradicts an earlier state itself, it fails. A run without changes makes no system
// call for it, unless one of two states at a path declares a link and the other another object.
func (t try) declare(h *host.Host, r *Result) {
	if t.declared == nil || t.dry && !t.predicts {
		return
	}
	d, p, found := r.declares(t.dry)
	if !found {
		return
	}
	if before := t.declared.at(p); t.contradicts(h, p, before, d) {
		r.contradict(p, before, d)
		return
	}
	t.declared.note(p, declarer{r.Step, d})
	if !t.dry {
		h.NoteDeclared(p, d.kind, d.nothing, d.target)
	}
}
