package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// allowMissing discards the failure of a step in a dry run if an earlier step of the run creates, or may create, the
// object that it lacks.
func (t try) allowMissing(result *Result, err error) {
	lack := host.MissingOf(err)
	step, sure := t.provider(lack)
	switch {
	case lack.Thing != host.AnyThing && step != nil && sure:
		result.postpone()
		result.Comment = fmt.Sprintf("unknown until %s exists, which %s creates first", lack.What(), spoken(step))
	case lack.Thing != host.AnyThing && step != nil:
		result.postpone()
		result.Comment = unknownUntil(lack, step)
	case t.prepared:
		result.postpone()
	default:
		step := t.earlier(func(*compile.Step) bool { return true })
		if step == nil && t.step.State() != "file" {
			step = t.latest(placesOf(t.step), func(s *compile.Step) bool { return s.Function() == "file.absent" })
		}
		if step != nil {
			result.postpone()
			result.Comment = fmt.Sprintf("unknown until %s has run, which changes the same file first", spoken(step))
		}
	}
}

// earlier returns the last earlier step for which counts is true and that would change a file which this step manages
// or reads; nil if there is none.
func (t try) earlier(counts func(*compile.Step) bool) *compile.Step {
	if t.step.State() != "file" {
		return nil
	}
	about := []string{path.Clean(t.step.Name())}
	if source, ok := t.step.Chunk.Value("source").(string); ok && path.IsAbs(source) {
		about = append(about, path.Clean(source))
	}
	return t.latest(about, counts)
}

// latest returns the last earlier step for which counts is true and that would change one of the files; nil if there is
// none.
func (t try) latest(about []string, counts func(*compile.Step) bool) *compile.Step {
	for _, s := range slices.Backward(t.predicted) {
		if counts(s) &&
			slices.ContainsFunc(about, func(p string) bool { return concerns(s, p) || isTree(t.step) && changesIn(s, p) }) {
			return s
		}
	}
	return nil
}

// concerns reports whether a step creates or changes the file at a path.
func concerns(s *compile.Step, p string) bool {
	switch {
	case s.State() == "file" && !isTree(s):
		return s.Name() != "" && path.Clean(s.Name()) == p
	case slices.Contains([]string{"file", "archive", "git"}, s.State()):
		return slices.ContainsFunc(placesOf(s), func(dir string) bool { return below(p, dir) })
	}
	return slices.Contains(placesOf(s), p) // a command that creates it
}

// changesIn reports whether a step creates or changes a file below a directory.
func changesIn(s *compile.Step, dir string) bool {
	return s.State() == "file" && path.IsAbs(s.Name()) && below(path.Clean(s.Name()), dir)
}

// isTree reports whether a step manages everything below its directory.
func isTree(s *compile.Step) bool {
	if s.State() != "file" {
		return false
	}
	return slices.Contains([]string{"recurse", "copy", "rename", "tidied", "retention_schedule"}, s.Fun()) ||
		s.Fun() == "directory" && (value.Truth(s.Chunk.Value("clean")) || value.Truth(s.Chunk.Value("recurse")))
}

// makesWhole reports whether a step writes all of a file, or removes it.
func makesWhole(s *compile.Step) bool {
	return s.State() != "file" ||
		slices.Contains([]string{"managed", "absent", "copy", "symlink", "hardlink", "rename", "serialize", "decode",
			"cached", "recurse"}, s.Fun())
}

// overtaken discards the result of a step in a dry run if an earlier step changes the same file or unit, installs a
// package that this one removes, or removes a package that this one installs.
func (t try) overtaken(result *Result) {
	if result.Skipped != "" {
		return
	}
	step, what := t.earlier(makesWhole), "the file"
	if step == nil {
		step, what = t.opposite(), "the packages"
	}
	if step == nil {
		step, what = t.sameUnit(), "the unit"
	}
	if step != nil && !isTree(t.step) {
		result.Outcome, result.Unknown, result.Changes, result.Predicted = Pending, true, value.NewMap(), value.NewMap()
		result.Comment = fmt.Sprintf("unknown, because %s, which runs first, changes %s", spoken(step), what)
		return
	}
	if step = t.earlier(func(*compile.Step) bool { return true }); step != nil {
		result.Outcome, result.Unknown = Pending, true
		result.Comment = fmt.Sprintf("unknown, because %s, which runs first, changes the same files; on the host as "+
			"it is now: %s",
			spoken(step), result.Comment)
	}
}

// unpacked discards the result of a step in a dry run if its missing file may come with a package of an earlier step:
// the step would then change or remove the file.
func (t try) unpacked(h *host.Host, result *Result) {
	if t.step.State() != "file" || result.Unknown || result.Outcome == Failed || result.Skipped != "" ||
		!ofPackages(t.step.Name()) {
		return
	}
	if _, err := h.Files.Lstat(t.step.Name()); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	for _, s := range slices.Backward(t.predicted) {
		if s.State() != "pkg" || takesAway(s) || t.step.Fun() != "absent" && !t.belongsTo(s) {
			continue
		}
		result.Outcome, result.Unknown = Pending, true
		result.Comment = fmt.Sprintf("unknown, because %s, which runs first, may install the file; on the host as it "+
			"is now: %s",
			spoken(s), result.Comment)
		return
	}
}

// belongsTo reports whether the file of this step probably comes with the packages of step s: this step requires s, or
// the path contains the name of one of the packages.
func (t try) belongsTo(s *compile.Step) bool {
	if slices.ContainsFunc(t.step.Requisites, func(q compile.Requisite) bool {
		return waits(q.Kind) && slices.ContainsFunc(q.Targets, func(target compile.Target) bool {
			return slices.Contains(target.Steps, s)
		})
	}) {
		return true
	}
	return slices.ContainsFunc(packagesOf(s), func(name string) bool { return strings.Contains(t.step.Name(), name) })
}

// ofPackages reports whether a file is in a directory in which packages install files.
func ofPackages(file string) bool {
	return slices.ContainsFunc([]string{"/etc", "/usr", "/var", "/lib", "/opt", "/boot"}, func(dir string) bool {
		return below(path.Clean(file), dir)
	})
}

// opposite returns the last earlier step that would install a package which this step removes, or remove one which it
// installs; nil if there is none.
func (t try) opposite() *compile.Step {
	if t.step.State() != "pkg" {
		return nil
	}
	about := packagesOf(t.step)
	for _, s := range slices.Backward(t.predicted) {
		if s.State() == "pkg" && takesAway(s) != takesAway(t.step) &&
			slices.ContainsFunc(packagesOf(s), func(name string) bool { return slices.Contains(about, name) }) {
			return s
		}
	}
	return nil
}

// sameUnit returns the last earlier step that would change the unit of this step, other than by a watch.
func (t try) sameUnit() *compile.Step {
	if t.step.State() != "service" || t.watching {
		return nil
	}
	for _, s := range slices.Backward(t.predicted) {
		if s.State() == "service" && host.UnitName(s.Name()) == host.UnitName(t.step.Name()) {
			return s
		}
	}
	return nil
}

// packagesOf returns the names of the packages of a step: those in pkgs, without versions, or else the step's name.
func packagesOf(s *compile.Step) (names []string) {
	list, ok := s.Chunk.Value("pkgs").(*value.List)
	if !ok {
		return []string{s.Name()}
	}
	for _, item := range list.Items {
		if versioned, ok := item.(*value.Map); ok {
			for _, name := range versioned.Keys() {
				names = append(names, value.Str(name))
			}
			continue
		}
		names = append(names, value.Str(item))
	}
	return names
}

// allowPrerequisites determines the result of a step of a dry run for which prerequisites are missing on the host as it
// is now.
func (t try) allowPrerequisites(result *Result, lacks []error) {
	for _, err := range lacks {
		lack := host.MissingOf(err)
		step, sure := t.provider(lack)
		switch {
		case !t.predicts, step == nil && lack.Thing == host.AUnit:
			result.Warnings = append(result.Warnings, fmt.Sprintf("it would fail on the host as it is now: %v", err))
		case step != nil && sure:
			result.Comment += fmt.Sprintf("; %s creates %s first", spoken(step), lack.What())
		case step != nil:
			result.Unknown, result.Changes, result.Predicted = true, value.NewMap(), value.NewMap()
			result.Comment = unknownUntil(lack, step)
		case t.prepared:
			result.fail(err, nil)
			result.postpone()
		default:
			result.fail(err, nil)
			result.Unknown, result.Predicted = false, nil
			return
		}
	}
}

func unknownUntil(lack *host.Missing, step *compile.Step) string {
	if lack.Thing == host.AnyThing { // any step may help, so none is named
		return fmt.Sprintf("unknown: on the host as it is now, %v, and earlier states may change that", lack.Unwrap())
	}
	return fmt.Sprintf("unknown, because %s does not exist now and %s, which runs first, may create it", lack.What(),
		spoken(step))
}

func spoken(s *compile.Step) string { return s.Function() + " " + s.Name() }

// provider returns the last earlier step that creates, or may create, the object that a later step lacks. It prefers
// steps that certainly create it.
func (t try) provider(l *host.Missing) (step *compile.Step, sure bool) {
	makesOne := func(name string) bool {
		return slices.ContainsFunc(t.predicted, func(s *compile.Step) bool { return makes(s, l.Thing, name) })
	}
	for _, s := range slices.Backward(t.predicted) {
		if slices.ContainsFunc(l.Names, func(name string) bool { return makes(s, l.Thing, name) }) &&
			!slices.ContainsFunc(l.Names, func(name string) bool { return !makesOne(name) }) {
			return s, true
		}
		if step == nil && mayMake(s, l.Thing) {
			step = s
		}
	}
	return step, false
}

// makes reports whether a step, if it succeeds, certainly creates the object of this kind and name.
func makes(s *compile.Step, thing host.Thing, name string) bool {
	if s.Name() == "" || takesAway(s) {
		return false
	}
	switch s.State() {
	case "user":
		return s.Name() == name && (thing == host.AUser || thing == host.AGroup && s.Chunk.Value("gid") == nil &&
			s.Chunk.Value("usergroup") != false)
	case "group":
		gid := s.Chunk.Value("gid")
		return thing == host.AGroup && (s.Name() == name || gid != nil && value.Str(gid) == name)
	case "file":
		switch thing {
		case host.ADirectory:
			dir := path.Clean(s.Name())
			whole := s.Fun() == "directory" || s.Fun() == "recurse" || s.Fun() == "symlink" || s.Fun() == "copy" ||
				s.Fun() == "rename"
			return whole && dir == name || strings.HasPrefix(dir, strings.TrimSuffix(name, "/")+"/") &&
				value.Truth(s.Chunk.Value("makedirs"))
		case host.AFile:
			return makesWhole(s) && path.Clean(s.Name()) == path.Clean(name)
		case host.ACommand:
			return path.Base(s.Name()) == path.Base(name)
		case host.AUnit:
			return isUnitFile(s.Name(), name)
		}
	}
	return false
}

// isUnitFile reports whether a path is that of a unit file, or of the init script of a service.
func isUnitFile(file, unit string) bool {
	dir, base := path.Split(file)
	return strings.HasPrefix(dir, "/etc/init.d/") && base == unit ||
		strings.Contains(dir, "/systemd/") && (base == unit || base == unit+".service")
}

// mayMake reports whether a step may create a thing that its arguments do not name, as packages and commands do.
func mayMake(s *compile.Step, thing host.Thing) bool {
	if takesAway(s) {
		return false
	}
	kind, _, _ := strings.Cut(s.State(), "_")
	anything := []string{"pkg", "cmd", "module"}
	switch thing {
	case host.AUser, host.AGroup:
		return slices.Contains(anything, kind)
	case host.ACommand:
		return slices.Contains(append(anything, "archive", "git", "pip", "gem", "npm", "pecl", "virtualenv", "alternatives"),
			kind)
	case host.AFile:
		return slices.Contains(append(anything, "archive", "git", "pip", "gem", "npm", "virtualenv", "docker"), kind) ||
			isTree(s) && s.Fun() != "directory"
	case host.AUnit:
		return slices.Contains(append(anything, "archive", "file", "docker", "pip", "npm"), kind) && s.Name() != ""
	case host.ADirectory:
		return slices.Contains(append(anything, "archive", "git", "user", "mount", "pip", "gem", "npm", "virtualenv",
			"postgres", "docker", "service", "lxd"), kind) ||
			s.State() == "file" && slices.Contains([]string{"recurse", "copy", "symlink", "rename"}, s.Fun())
	case host.APackage:
		return slices.Contains([]string{"cmd", "module", "pkgrepo"}, kind) || bringsRepository(s)
	}
	return true
}

// bringsRepository reports whether a step may add a package repository: with a file in the configuration of the package
// manager, or with a package such as epel-release.
func bringsRepository(s *compile.Step) bool {
	if s.State() == "file" {
		return slices.ContainsFunc([]string{"/etc/apt", "/etc/yum", "/etc/dnf", "/etc/zypp", "/etc/pacman", "/etc/apk"},
			func(dir string) bool {
				return strings.HasPrefix(s.Name(), dir)
			})
	}
	about := s.Name() + " " + value.Str(s.Chunk.Value("pkgs"))
	return s.State() == "pkg" && (value.Truth(s.Chunk.Value("sources")) || strings.Contains(about, "release") ||
		strings.Contains(about, "repo"))
}

// takesAway reports whether the function of a step removes its object.
func takesAway(s *compile.Step) bool {
	return slices.Contains([]string{"absent", "removed", "purged", "dead", "disabled", "masked", "held", "unheld",
		"unmounted", "not_cached", "missing", "tidied"}, s.Fun())
}
