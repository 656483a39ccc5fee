package file

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/ospath"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// find returns the files below some directories that match all criteria. For a mistake in a criterion it returns a
// sentence, as Salt does.
func (o file) find(ctx context.Context, p string, words []string, options *value.Map) (any, error) {
	if slices.Contains(words, "delete") || options.Has("delete") || options.Has("exec") {
		return nil, diag.Call.Hint(
			errors.New("deleting files and running commands change the host, and templates only read"),
			"use file.tidied or cmd.run as a state")
	}
	s, err := o.searchFor(options)
	if err != nil {
		return "error: " + err.Error(), nil
	}
	for _, start := range ospath.Glob(o.Host, o.path(p)) {
		if err := o.complete(ctx, "file.find", s.below(ctx, start)); err != nil {
			return nil, err
		}
	}
	found := value.NewList(s.found...)
	if err := value.SortBy(found.Items, func(v any) any { return v }, false); err != nil {
		return nil, err
	}
	return found, nil
}

// searching is one search of file.find.
type searching struct {
	file     file
	criteria []criterion
	print    []string
	min, max int // depth; max is -1 for no limit
	found    []any
}

func (o file) searchFor(options *value.Map) (*searching, error) {
	s := &searching{file: o, max: -1, print: []string{"path"}}
	for key, v := range options.All() {
		name, text := value.Str(key), value.Str(v)
		if strings.HasPrefix(name, "_") || name == "test" {
			continue
		}
		if err := s.option(name, text, v); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *searching) option(name, text string, v any) (err error) {
	switch name {
	case "mindepth":
		s.min, err = function.Int(v)
		return err
	case "maxdepth":
		s.max, err = function.Int(v)
		return err
	}
	if !value.Truth(v) {
		return fmt.Errorf("missing value for %q option", name)
	}
	if name == "print" {
		s.print = strings.Fields(strings.ReplaceAll(text, ",", " "))
		return nil
	}
	make, ok := s.kinds()[name]
	if !ok {
		return fmt.Errorf("invalid option %q", name)
	}
	passes, err := make(text)
	s.criteria = append(s.criteria, passes)
	return err
}

func (s *searching) kinds() map[string]func(string) (criterion, error) {
	return map[string]func(string) (criterion, error){
		"name":   func(t string) (criterion, error) { return named(looseGlob(t), false) },
		"iname":  func(t string) (criterion, error) { return named(looseGlob(t), true) },
		"regex":  func(t string) (criterion, error) { return named(t, false) },
		"iregex": func(t string) (criterion, error) { return named(t, true) },
		"type":   ofType,
		"owner":  s.ownedBy,
		"group":  s.ofGroup,
		"size":   ofSize,
		"mtime":  s.file.modified,
		"grep":   s.file.holding,
	}
}

// modified parses ages such as 7d and -2h30m: a minimum, or with a minus sign a maximum. An age is truncated to its
// smallest unit.
func (o file) modified(text string) (criterion, error) {
	m := agePattern().FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("invalid time interval: '%s'", text)
	}
	total, smallest := 0.0, 0.0
	for i, unit := range []float64{604800, 86400, 3600, 60, 1} {
		if m[i+2] != "" {
			n, _ := strconv.ParseFloat(m[i+2], 64) // the expression admits numbers only
			total, smallest = total+n*unit, unit
		}
	}
	if smallest == 0 {
		return nil, fmt.Errorf("invalid time interval: '%s'", text)
	}
	limit := o.Time().Add(-time.Duration(math.Floor(total/smallest)*smallest) * time.Second)
	return func(_ string, info host.Info) bool {
		return m[1] == "-" && !info.Modified.Before(limit) || m[1] != "-" && !info.Modified.After(limit)
	}, nil
}

func (o file) holding(pattern string) (criterion, error) {
	re, err := value.CompileRegexp(pattern, value.RegexpFlags{})
	if err != nil {
		return nil, fmt.Errorf("invalid regular expression: %q", pattern)
	}
	return func(full string, info host.Info) bool {
		if !info.IsRegular() {
			return false
		}
		text, err := function.ReadText(o.Host, full)
		if err != nil {
			return false
		}
		m, err := re.Search(text)
		return err == nil && m != nil
	}, nil
}

// below visits a path and, if it is a directory, everything in it.
func (s *searching) below(ctx context.Context, start string) error {
	if s.min < 1 {
		s.consider(ctx, start)
	}
	top := strings.Count(path.Clean(start), "/")
	return ospath.Walk(ctx, s.file.Host, start, func(dir string, dirs, files []string) bool {
		depth := strings.Count(path.Clean(dir), "/") - top + 1
		if s.max >= 0 && depth > s.max {
			return false
		}
		if depth >= s.min {
			for _, name := range append(dirs, files...) {
				s.consider(ctx, path.Join(dir, name))
			}
		}
		return true
	})
}

func (s *searching) consider(ctx context.Context, full string) {
	info, err := s.file.Host.Following().Files.Stat(full)
	if err != nil {
		if info, err = s.file.Host.Files.Lstat(full); err != nil {
			return
		}
	}
	for _, passes := range s.criteria {
		if !passes(full, info) {
			return
		}
	}
	printed := make([]any, len(s.print))
	for i, what := range s.print {
		printed[i] = s.show(ctx, what, full, info)
	}
	if len(printed) == 1 {
		s.found = append(s.found, printed[0])
		return
	}
	s.found = append(s.found, value.NewList(printed...))
}

func (s *searching) show(ctx context.Context, what, full string, info host.Info) any {
	switch what {
	case "path":
		return full
	case "name":
		return path.Base(full)
	case "size":
		return int(info.Size)
	case "type":
		return map[string]string{"file": "f", "dir": "d", "link": "l", "char": "c", "block": "b", "pipe": "p",
			"socket": "s"}[kindOf(info.Mode)]
	case "mode":
		return int(info.Mode.Perm())
	case "mtime":
		return int(info.Modified.Unix())
	case "user":
		return s.file.UserName(info.UID)
	case "group":
		return s.file.groupName(info.GID)
	case "md5":
		if sum, err := s.file.sum(ctx, full, "md5"); info.IsRegular() && err == nil {
			return sum
		}
		return ""
	}
	return nil
}
