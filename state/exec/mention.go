package exec

import (
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// This file finds the paths that a step and a guard name, so that a dry run can tell whether an earlier step may change
// them.

// mentions reports whether one of the words of a guard names the object of a step: one of its paths, or a package,
// unit, user or group.
func mentions(words []string, s *compile.Step) bool {
	switch s.State() {
	case "pkg", "user", "group", "service":
		return slices.ContainsFunc(packagesOf(s), func(name string) bool { return slices.Contains(words, name) })
	}
	for _, p := range append(placesOf(s), writtenBy(s)...) {
		for _, word := range words {
			if path.IsAbs(word) && (below(path.Clean(word), p) || below(p, path.Clean(word))) {
				return true
			}
		}
	}
	return false
}

const wordLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-@"

// words returns the words of a text and, if dir is not empty, also the path in dir of each relative word.
func words(text, dir string) []string {
	all := strings.FieldsFunc(text, func(c rune) bool { return !strings.ContainsRune(wordLetters, c) })
	for _, word := range slices.Clone(all) {
		if dir != "" && !path.IsAbs(word) && !strings.HasPrefix(word, "-") {
			all = append(all, path.Join(dir, word))
		}
	}
	return all
}

// directoryOf returns the directory that a step sets for its commands, or "".
func directoryOf(s *compile.Step) string {
	if dir, ok := s.Chunk.Value("cwd").(string); ok && path.IsAbs(dir) {
		return dir
	}
	return ""
}

// placesOf returns the paths that a step creates or changes according to its arguments.
func placesOf(s *compile.Step) (places []string) {
	names := []any{s.Chunk.Value("creates")}
	if list, ok := names[0].(*value.List); ok {
		names = list.Items
	}
	switch s.State() {
	case "cmd", "module": // its name is a command
	case "git": // its name is the URL of the repository
		names = append(names, s.Chunk.Value("target"))
	default:
		names = append(names, s.Name())
	}
	for _, name := range names {
		if text, ok := name.(string); ok && path.IsAbs(text) {
			places = append(places, path.Clean(text))
		}
	}
	return places
}

// writtenBy returns the paths in the arguments of a step's commands, which the commands may create or change. It leaves
// out paths in /dev, /proc and /sys.
func writtenBy(s *compile.Step) (places []string) {
	dir := directoryOf(s)
	for _, text := range commandsOf(s) {
		for _, command := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(";|&()\n", c) }) {
			for _, argument := range argumentsOf(command) {
				for _, word := range words(argument, dir) {
					if p := path.Clean(word); path.IsAbs(p) && !ofKernel(p) {
						places = append(places, p)
					}
				}
			}
		}
	}
	return places
}

// ofKernel reports whether a path is a device, or is in a file system of the kernel.
func ofKernel(p string) bool { return below(p, "/dev") || below(p, "/proc") || below(p, "/sys") }

// argumentsOf returns the words of a command after its program, including redirections, but not assignments before the
// program.
func argumentsOf(command string) []string {
	fields := strings.Fields(command)
	for i, field := range fields {
		if !strings.Contains(field, "=") && !strings.ContainsAny(field, "<>") {
			return append(fields[:i:i], fields[i+1:]...)
		}
		if !strings.ContainsAny(field, "<>") {
			fields[i] = ""
		}
	}
	return fields
}

// commandsOf returns the command lines of a step, including those in arguments of functions that run commands.
func commandsOf(s *compile.Step) (lines []string) {
	switch s.State() {
	case "cmd":
		lines = append(lines, s.Name())
		if args, ok := s.Chunk.Get("args"); ok {
			lines = append(lines, "script "+value.Str(args)) // its name is a file of the tree
		}
	case "module":
		for key, v := range s.Chunk.All() {
			if function, ok := key.(string); ok && strings.HasPrefix(function, "cmd.") {
				lines = append(lines, textsOf(v)...)
			}
		}
	}
	return lines
}

// textsOf returns the strings in a value, including those in lists and mappings.
func textsOf(v any) (texts []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case *value.List:
		for _, item := range v.Items {
			texts = append(texts, textsOf(item)...)
		}
	case *value.Map:
		for _, item := range v.All() {
			texts = append(texts, textsOf(item)...)
		}
	}
	return texts
}

// below reports whether p is dir or is in dir. If dir is "/", only "/" itself counts.
func below(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") && dir != "/"
}
