package file

import (
	"context"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/descent"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// tidied implements file.tidied: it removes files from a directory by age, size and name.
type tidied struct {
	Name           string   `sls:"name"`
	Age            float64  `sls:"age"` // days
	Size           any      `sls:"size"`
	Matches        []string `sls:"matches"`
	Exclude        []string `sls:"exclude"`
	RemoveDirs     bool     `sls:"rmdirs"`
	RemoveLinks    bool     `sls:"rmlinks"`
	FullPathMatch  bool     `sls:"full_path_match"`
	FollowLinks    bool     `sls:"followlinks"`
	TimeComparison string   `sls:"time_comparison"`
	Operator       string   `sls:"age_size_logical_operator"`
	Only           string   `sls:"age_size_only"`

	size   int64
	match  []*value.Regexp
	except []*value.Regexp
	gone   []string
	tops   []string // those in gone whose directory stays
	notes  []string // links that are not followed
}

func newTidied() *tidied {
	return &tidied{Size: 0, Matches: []string{".*"}, RemoveLinks: true, TimeComparison: "atime", Operator: "OR"}
}

func (t *tidied) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	name, err := absolute(h, "name", t.Name)
	if err != nil {
		return module.Diff{}, err
	}
	if t.Name = name; !isDir(h, name) {
		return module.Diff{}, lackingDir(h, name)
	}
	if err := t.compile(); err != nil {
		return module.Diff{}, err
	}
	if err := t.look(ctx, h, name, looking{}); err != nil {
		return module.Diff{}, err
	}
	if len(t.gone) == 0 {
		return module.Diff{Comment: "nothing to remove in " + name, Warnings: t.notes}, nil
	}
	return module.Diff{Changes: value.NewMap("removed", value.Strings(t.gone...)), Warnings: t.notes,
		Comment: fmt.Sprintf("would remove %s in %s", diag.Count(len(t.gone), "file"), name)}, nil
}

func (t *tidied) compile() (err error) {
	for _, list := range []struct {
		argument string
		texts    []string
		into     *[]*value.Regexp
	}{{"matches", t.Matches, &t.match}, {"exclude", t.Exclude, &t.except}} {
		for _, text := range list.texts {
			r, err := compileRegexp(list.argument, text, value.RegexpFlags{})
			if err != nil {
				return err
			}
			*list.into = append(*list.into, r)
		}
	}
	t.size, err = bytesOf(t.Size)
	return err
}

// bytesOf parses a size in bytes such as 10, 10k, 10MiB (units of 1024) or 10MB (units of 1000).
func bytesOf(v any) (int64, error) {
	text := strings.ToLower(strings.TrimSpace(value.Str(v)))
	m := regexp.MustCompile(`^([0-9.]+)\s*([kmgtpe]?)(b|ib|)$`).FindStringSubmatch(text)
	if m == nil {
		return 0, diag.Argument.Hint(fmt.Errorf("size %s is not a size", value.Str(v)),
			"write a number, or one with k, M or G")
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, fmt.Errorf("size %s is not a size", value.Str(v))
	}
	base := 1024.0
	if m[2] != "" && m[3] == "b" {
		base = 1000
	}
	power := 0
	if m[2] != "" {
		power = 1 + strings.Index("kmgtpe", m[2])
	}
	return int64(n * math.Pow(base, float64(power))), nil
}

// maxLinkDepth bounds a walk through links that form a cycle.
const maxLinkDepth = 64

// looking is the position of a walk.
type looking struct {
	level, links int  // the depth below the directory of the state, and the number of links on the way
	going        bool // a directory above is removed with all its content
}

// look finds the paths to remove below a directory, the deepest first. A directory below the depth limit stays,
// with a note, unless a directory above it is removed.
func (t *tidied) look(ctx context.Context, h *host.Host, dir string, at looking) error {
	if descent.TooDeep(dir, at.level) || at.links > maxLinkDepth {
		if !at.going && at.links <= maxLinkDepth {
			t.notes = append(t.notes, descent.Enter(ctx, dir, at.level).Error()+"; its content is kept")
		}
		return ctx.Err()
	}
	files, dirs, err := list(ctx, h, dir)
	if err != nil {
		return err
	}
	here := slices.Concat(files, dirs)
	goes := make([]bool, len(here))
	for i, f := range here {
		if goes[i], err = t.wants(f); err != nil {
			return err
		}
	}
	for i, f := range here {
		next := looking{level: at.level + 1, links: at.links, going: at.going || goes[i]}
		switch {
		case f.info.IsDir():
		case f.dir && t.follows(h, f.path):
			next.links, next.going = at.links+1, false // removing the link does not remove its target
		default:
			continue
		}
		if err := t.look(ctx, h, f.path, next); err != nil {
			return err
		}
	}
	for i, f := range here {
		if goes[i] {
			t.gone = append(t.gone, f.path)
		}
		if goes[i] && !at.going {
			t.tops = append(t.tops, f.path)
		}
	}
	return nil
}

// follows reports whether the walk follows a link to a directory. It does not follow a link that an
// unprivileged user controls to a directory of another user.
func (t *tidied) follows(h *host.Host, link string) bool {
	if !t.FollowLinks {
		return false
	}
	refused := h.Refuses(link)
	if refused != nil {
		t.notes = append(t.notes, fmt.Sprintf("the link %s is not followed: %v", link, refused))
	}
	return refused == nil
}

// wants reports whether a path is to be removed.
func (t *tidied) wants(f found) (bool, error) {
	size := f.info.Size
	switch {
	case f.info.IsLink():
		if size = 0; !t.RemoveLinks {
			return false, nil
		}
	case f.dir:
		if size = 0; !t.RemoveDirs {
			return false, nil
		}
	}
	if !t.due(f.info, size) {
		return false, nil
	}
	name := path.Base(f.path)
	if t.FullPathMatch {
		name = f.path
	}
	ok, err := matchesAny(t.match, name)
	if err != nil || !ok {
		return false, err
	}
	kept, err := matchesAny(t.except, name)
	return !kept, err
}

func matchesAny(list []*value.Regexp, name string) (bool, error) {
	for _, r := range list {
		if m, err := r.MatchStart(name); m != nil || err != nil {
			return m != nil, err
		}
	}
	return false, nil
}

// due reports whether age and size meet the limits.
func (t *tidied) due(info host.Info, size int64) bool {
	at := info.Accessed
	switch strings.ToLower(t.TimeComparison) {
	case "mtime":
		at = info.Modified
	case "ctime":
		at = info.Changed
	}
	old, big := float64(daysBetween(at, time.Now())) >= t.Age, size >= t.size
	switch strings.ToLower(t.Only) {
	case "age":
		return old
	case "size":
		return big
	}
	if strings.EqualFold(t.Operator, "AND") {
		return old && big
	}
	return old || big
}

// daysBetween returns the number of midnights between two times.
func daysBetween(a, b time.Time) int {
	day := func(t time.Time) time.Time {
		y, m, d := t.Local().Date()
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	}
	days := int(day(b).Sub(day(a)).Hours() / 24)
	return max(days, -days)
}

func (t *tidied) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	done := module.Report{Changes: value.NewMap(),
		Comment: fmt.Sprintf("removed %s in %s", diag.Count(len(t.gone), "file"), t.Name)}
	for i, p := range t.tops {
		err := ctx.Err()
		if err == nil {
			err = h.Files.RemoveAll(p)
		}
		if err != nil {
			if i > 0 {
				done.Changes.Set("removed", value.Strings(t.tops[:i]...))
			}
			return done, err
		}
	}
	done.Changes.Set("removed", value.Strings(t.gone...))
	return done, nil
}
