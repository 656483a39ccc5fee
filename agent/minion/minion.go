// Package minion reads the configuration of a Salt minion, for hosts and trees that have one.
//
// A configuration directory has the file `minion` and minion.d/*.conf; later files override earlier ones, as in Salt.
// The native engine uses these options: the directories of files, the host's ID, how the pillar is merged, and how
// results are shown. All other options are kept, since templates may read them in opts.
package minion

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// The defaults of Salt.
const (
	defaultStates = "/srv/salt"
	defaultPillar = "/srv/pillar"
)

// Config is the configuration in a minion's files.
type Config struct {
	File    string     // the main file
	Files   []string   // all files that were read, sorted
	Options *value.Map // options without a field in Config, under Salt's names

	ID     string
	States []roots.Env // file_roots; Salt's default if it is not set
	Pillar []roots.Env // pillar_roots
	Grains *value.Map
	// GrainsDirs are directories with files of grains and programs that print grains; the last one has the highest
	// priority (grains_dirs).
	GrainsDirs []string
	Test       bool
	Failhard   bool
	Output     Output

	// StatesPos is the position of file_roots, or of the file if that is not set.
	StatesPos diag.Pos
	// Ignored has the options that would change the outcome under Salt and do not here, with the reason.
	Ignored []string
}

// Output configures how results are shown.
type Output struct {
	Mode    string // state_output: full, terse, mixed or changes; "" for full
	Verbose bool   // state_verbose: show what needed no change as well
	Format  string // output: the outputter; "" for the function's own
	Color   bool   // color: on a terminal
}

// Load reads a configuration directory. Its error is a diag.List with all problems of the files.
func Load(dir string) (*Config, error) {
	file := filepath.Join(dir, "minion")
	r := &reader{seen: map[string]bool{}}
	main, err := r.read(file)
	if there, unread := walk.Exists(dir); !there && unread == nil {
		return nil, diag.Usage.Hint(fmt.Errorf("there is no directory %s", dir),
			"-c takes a directory with a file named minion, such as /etc/salt")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Usage.Hint(fmt.Errorf("there is no minion file in %s", dir),
			"-c takes a directory with a file named minion, such as /etc/salt")
	}
	if err != nil {
		return nil, err
	}
	r.options = value.NewMap()
	r.take(main)
	r.include(dir, main.options.Value("default_include"), "minion.d/*.conf")
	r.include(dir, main.options.Value("include"), "")
	c := r.config(file)
	c.Grains = r.staticGrains(dir, c.Grains)
	c.Files = slices.Sorted(maps.Keys(r.seen))
	if err := r.problems.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// reader merges the files.
type reader struct {
	options  *value.Map
	from     map[string]*source // the file that set an option last
	problems diag.List
	seen     map[string]bool
}

// source is one file.
type source struct {
	options  *value.Map
	document *yaml.Document
	file     string
}

func (s *source) pos(key string) diag.Pos {
	if p := s.document.Pos(s.options, key); !p.IsZero() {
		return p
	}
	return diag.Pos{File: s.file}
}

// read reads one file. It collects mistakes in the file, and returns an error if the file cannot be read.
func (r *reader) read(file string) (*source, error) {
	s := &source{options: value.NewMap(), file: file}
	r.seen[file] = true
	data, err := walk.ReadGiven(file)
	if err != nil {
		return s, fmt.Errorf("reading the minion's configuration: %w", err)
	}
	s.document, err = yaml.Load(data, file)
	if err != nil {
		r.problems.AddError(diag.Pos{File: file}, err)
		return s, nil
	}
	switch v := s.document.Value.(type) {
	case nil:
	case *value.Map:
		s.options = v
	default:
		r.problems.Add(diag.Pos{File: file, Line: 1, Col: 1}, "the file is a %s, and a mapping of options was expected",
			value.TypeName(v)).
			WithHint(diag.Config, "write options as `name: value`")
	}
	return s, nil
}

// take sets a file's options, which override those that were read before.
func (r *reader) take(s *source) {
	if r.from == nil {
		r.from = map[string]*source{}
	}
	for key, v := range s.options.All() {
		name, ok := key.(string)
		if !ok {
			continue
		}
		r.options.Set(name, v)
		r.from[name] = s
	}
}

// include reads the files that match patterns, relative to dir.
func (r *reader) include(dir string, patterns any, fallback string) {
	if patterns == nil {
		patterns = fallback
	}
	for _, pattern := range texts(patterns) {
		if pattern == "" {
			continue
		}
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(dir, pattern)
		}
		files, err := walk.Glob(pattern) // sorted
		if err != nil {
			r.problems.Add(diag.Pos{File: filepath.Join(dir, "minion")}, "include: %q is not a pattern: %v", pattern, err)
		}
		for _, file := range files {
			r.includeFile(file)
		}
	}
}

func (r *reader) includeFile(file string) {
	if r.seen[file] || r.none(file) {
		return
	}
	s, err := r.read(file)
	if err != nil {
		r.problems.AddError(diag.Pos{File: file}, err)
		return
	}
	r.take(s)
}

// none reports whether there is no file to read. A file that cannot be examined is added to the problems.
func (r *reader) none(file string) bool {
	info, err := os.Stat(file)
	found, err := walk.Found(err)
	r.problems.AddError(diag.Pos{File: file}, err)
	return !found || info.IsDir()
}

// staticGrains reads the file of grains beside the configuration, which overrides the minion's own grains.
func (r *reader) staticGrains(dir string, grains *value.Map) *value.Map {
	file := filepath.Join(dir, "grains")
	if r.none(file) {
		return grains
	}
	s, err := r.read(file)
	if err != nil {
		r.problems.AddError(diag.Pos{File: file}, err)
		return grains
	}
	grains.Update(s.options)
	return grains
}

// texts returns the strings of a list, or a single string as a list.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case *value.List:
		var all []string
		for _, item := range v.Items {
			all = append(all, value.Str(item))
		}
		return all
	}
	return nil
}
