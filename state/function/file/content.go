package file

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/ospath"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// contentFunctions has the functions of file that look into files.
func contentFunctions(o file) function.Table {
	return function.Table{
		"file.read":           function.Of("path, binary=False", o.read),
		"file.contains":       function.Of("path, text", o.contains),
		"file.contains_regex": function.Of("path, regex, lchar=''", o.containsRegexp),
		"file.contains_glob":  function.Of("path, glob_expr", o.containsGlob),
		"file.search": function.Of("path, pattern, flags=8, bufsize=1, ignore_if_missing=False, multiline=False",
			o.search),
		"file.grep": function.Of("path, pattern, *opts", o.grep),
		"file.get_hash": function.Of("path, form='sha256', chunk_size=65536",
			func(ctx context.Context, p, form string, _ any) (string, error) { return o.sum(ctx, o.path(p), form) }),
		"file.get_sum":    function.Of("path, form='sha256'", o.sumOrText),
		"file.check_hash": function.Of("path, file_hash", o.checkHash),
		"file.lsattr":     function.Of("path", o.attributes),
		"file.find":       function.Of("path, *args, **kwargs", o.find),
	}
}

func (o file) read(p string, binary any) (any, error) {
	text, err := function.ReadText(o.Host, p)
	if err == nil && binary == true {
		return []byte(text), nil
	}
	return text, err
}

// content returns a file's text; ok is false for a file that cannot be read, which the contains functions treat as
// empty.
func (o file) content(p string) (string, bool) {
	text, err := function.ReadText(o.Host, o.path(p))
	return text, err == nil
}

func (o file) contains(p string, text any) bool {
	content, ok := o.content(p)
	return ok && strings.Contains(content, value.Strip(value.Str(text)))
}

// containsRegexp searches one line at a time, including its line break.
func (o file) containsRegexp(p, pattern, leading string) (bool, error) {
	content, ok := o.content(p)
	if !ok {
		return false, nil
	}
	re, err := value.CompileRegexp(pattern, value.RegexpFlags{})
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(content) {
		if leading != "" {
			line = strings.TrimLeft(line, leading)
		}
		if m, err := re.Search(line); m != nil || err != nil {
			return m != nil, err
		}
	}
	return false, nil
}

func (o file) containsGlob(p, pattern string) bool {
	content, ok := o.content(p)
	return ok && content != "" && value.Glob(pattern, content)
}

// search looks for a regular expression anywhere in a file.
func (o file) search(p, pattern string, flags, _ any, missingIsNothing, multiline bool) (bool, error) {
	text, err := function.ReadText(o.Host, o.path(p))
	if function.Absent(err) && missingIsNothing {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return false, fmt.Errorf("%s is not a text file", p)
	}
	read, inline, err := regexpFlags(flags)
	if err != nil {
		return false, err
	}
	read.Multiline = read.Multiline || multiline
	re, err := value.CompileRegexp(inline+pattern, read)
	if err != nil {
		return false, err
	}
	m, err := re.Search(text)
	return m != nil, err
}

// regexpFlags parses flags of Python's re: their sum, a name, or names. Flags that the engine passes on to the
// expression are returned as inline text.
func regexpFlags(v any) (flags value.RegexpFlags, inline string, err error) {
	sum, isNumber := v.(int)
	if !isNumber {
		if sum, err = sumOfFlags(v); err != nil {
			return flags, "", err
		}
	}
	if sum&dotAll != 0 {
		inline = "(?s)"
	}
	if sum&^(ignoreCase|multiline|dotAll|unicode) != 0 {
		err = errors.New("the supported flags of regular expressions are IGNORECASE (2), MULTILINE (8) and DOTALL (16)")
	}
	return value.RegexpFlags{IgnoreCase: sum&ignoreCase != 0, Multiline: sum&multiline != 0}, inline, err
}

// The numbers of Python's flags of regular expressions.
const ignoreCase, multiline, dotAll, unicode = 2, 8, 16, 32

// sumOfFlags returns the number for the names of flags.
func sumOfFlags(v any) (sum int, err error) {
	names, err := function.Texts(v)
	if err != nil {
		return 0, err
	}
	known := map[string]int{"IGNORECASE": ignoreCase, "I": ignoreCase, "MULTILINE": multiline, "M": multiline,
		"DOTALL": dotAll, "S": dotAll, "UNICODE": unicode, "U": unicode}
	for _, name := range names {
		flag, ok := known[strings.ToUpper(name)]
		if !ok {
			return 0, diag.Call.Hint(fmt.Errorf("%q is not a supported flag of regular expressions", name),
				"the flags are IGNORECASE, MULTILINE and DOTALL")
		}
		sum |= flag
	}
	return sum, nil
}

// grep runs grep(1) on files and returns a result like cmd.run_all. grep reads the content of the files from
// standard input instead of opening them by name, because a program that follows links may open another file, or a
// pipe that never ends.
func (o file) grep(ctx context.Context, p, pattern string, options []string) (*value.Map, error) {
	files := ospath.Glob(o.Host, o.path(p))
	if len(files) == 0 {
		files = []string{o.path(p)}
	}
	argv := []string{"grep"}
	for _, option := range options {
		words, err := value.SplitWords(option)
		if err != nil {
			return nil, err
		}
		if len(words) > 1 {
			return nil, fmt.Errorf("%q is more than one option: pass each as a separate argument", option)
		}
		argv = append(argv, words...)
	}
	argv = append(argv, pattern)
	all := host.Output{Code: 1}
	for _, name := range files {
		out, err := o.grepOne(ctx, argv, name, len(files) > 1)
		if err != nil {
			return nil, err
		}
		all.PID, all.Stdout, all.Stderr = out.PID, joinLines(all.Stdout, out.Stdout), joinLines(all.Stderr, out.Stderr)
		if all.Code == 1 || out.Code > 1 {
			all.Code = out.Code
		}
	}
	return function.CommandResult(all), nil
}

// grepOne runs grep on the content of one file. If several files are searched, each matching line is prefixed with
// the name of its file.
func (o file) grepOne(ctx context.Context, argv []string, name string, several bool) (host.Output, error) {
	line := host.Line{Text: strings.Join(append(slices.Clone(argv), name), " "), Argv: slices.Clone(argv), Quiet: true}
	text, err := function.ReadText(o.Host, name)
	if function.Absent(err) {
		return host.Output{Code: 2, Stderr: "grep: " + name + ": No such file or directory"}, nil
	}
	if err != nil {
		return host.Output{}, err
	}
	if several {
		line.Argv = append(line.Argv, "--with-filename", "--label="+name)
	}
	line.Argv, line.Stdin = append(line.Argv, "-"), text
	return o.Host.Shell(ctx, line)
}

// joinLines joins two texts with a line break.
func joinLines(above, below string) string {
	if above == "" || below == "" {
		return above + below
	}
	return strings.TrimSuffix(above, "\n") + "\n" + below
}

// mostHashed is the size of the largest file whose digest a template can have. A user can make a sparse file of 300
// GB that takes no disk space but half an hour to hash, and devices have no end.
const mostHashed = 4 << 30

func tooMuch(p string) error {
	return diag.Call.Hint(fmt.Errorf("%s is larger than %s, and templates take no digest of it", p,
		diag.Size(mostHashed)), "look at it with ls -ls: a sparse file may be large and use little disk space")
}

func (o file) sum(ctx context.Context, p, form string) (string, error) {
	h, err := function.NewHash(form)
	if err != nil {
		return "", err
	}
	f, err := o.Host.Files.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if sized, ok := f.(interface{ Size() int64 }); ok && sized.Size() > mostHashed {
		return "", tooMuch(p)
	}
	n, err := io.Copy(h, io.LimitReader(artifact.Stoppable(ctx, f), mostHashed+1))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", p, err)
	}
	if n > mostHashed {
		return "", tooMuch(p)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sumOrText returns a digest, or the text that Salt returns for a file that does not exist.
func (o file) sumOrText(ctx context.Context, p, form string) (string, error) {
	if !o.IsFile(p) {
		return "File not found", nil
	}
	return o.sum(ctx, o.path(p), form)
}

// checkHash compares a file with md5=... or md5:..., or with a bare hash, whose length determines the algorithm.
func (o file) checkHash(ctx context.Context, p, want string) (bool, error) {
	form, sum := "", want
	if i := strings.IndexByte(want, ':'); i >= 0 {
		form, sum = want[:i], want[i+1:]
	} else if i := strings.IndexByte(want, '='); i >= 0 {
		form, sum = want[:i], want[i+1:]
	} else {
		form = map[int]string{32: "md5", 40: "sha1", 56: "sha224", 64: "sha256", 96: "sha384", 128: "sha512"}[len(want)]
	}
	if form == "" {
		return false, fmt.Errorf("no hash has %d digits", len(want))
	}
	got, err := o.sum(ctx, o.path(p), form)
	return got == sum, err
}

// attributes returns the flags of a file, such as immutable.
func (o file) attributes(ctx context.Context, path string) (*value.Map, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("%s is not an absolute path", path)
	}
	text, err := o.Stdout(ctx, "lsattr", "-d", path)
	if err != nil {
		return nil, err
	}
	flags := value.NewList()
	first, _, _ := strings.Cut(text, " ")
	for _, r := range first {
		if r != '-' {
			flags.Append(string(r))
		}
	}
	return value.NewMap(path, flags), nil
}
