package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// parser reads a list of pairs, of the name of a file and its bytes in base64, and writes its version and the syntax
// errors that it found. It compiles the files, in the encodings that they declare, and executes nothing of them.
const parser = `import binascii, json, sys, warnings
warnings.simplefilter("ignore")
errors = []
for file, data in json.loads(sys.stdin.buffer.read().decode("utf-8")):
    try:
        compile(binascii.a2b_base64(data), file, "exec", dont_inherit=True)
    except SyntaxError as e:
        errors.append({"file": file, "line": e.lineno or 1, "col": max(e.offset or 0, 1), "message": str(e.msg)})
    except (ValueError, RecursionError, MemoryError, OverflowError) as e:
        errors.append({"file": file, "message": str(e)})
json.dump({"version": "%d.%d.%d" % sys.version_info[:3], "errors": errors}, sys.stdout)
`

// parseTime is the maximum time that python3 takes to compile the files of all trees.
const parseTime = time.Minute

// parsed is what the parser writes.
type parsed struct {
	Version string `json:"version"`
	Errors  []struct {
		File    string `json:"file"`
		Line    int    `json:"line"`
		Col     int    `json:"col"`
		Message string `json:"message"`
	} `json:"errors"`
}

// grainsRoot is the directory of a release of base that has its grain modules.
const grainsRoot = "grains"

// Programs returns the syntax errors of a release's files in Python. Without a python3 that can parse them, it returns
// a diagnostic that is HostOnly.
func Programs(ctx context.Context, release fs.FS) (diag.List, error) {
	here, err := host.Open(host.Options{}, host.Caches{})
	if err != nil {
		return nil, err
	}
	roots, err := existing(release, slices.Concat(stateRoots(), pillarRoots()))
	if err != nil {
		return nil, err
	}
	c := &compiler{}
	if err := c.findPrograms(Source{Files: release}, roots); err != nil {
		return nil, err
	}
	err = c.parse(ctx, here)
	return c.static, err
}

// findPrograms adds the files in Python below roots of a tree, and the grain modules of base, to those that python3
// compiles.
func (c *compiler) findPrograms(tree Source, roots []string) error {
	if !slices.Contains(roots, ".") {
		grains, err := existing(tree.Files, []string{grainsRoot})
		if err != nil {
			return err
		}
		roots = append(roots, grains...)
	}
	for _, root := range roots {
		err := fs.WalkDir(tree.Files, root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			return c.addProgram(tree, root, name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addProgram adds a file if it is in Python.
func (c *compiler) addProgram(tree Source, root, name string) error {
	module := path.Ext(name) == ".py" && (root == grainsRoot || ofLoader(strings.TrimPrefix(name, root+"/")))
	if !module && path.Ext(name) != ".sls" {
		return nil
	}
	data, err := fs.ReadFile(tree.Files, name)
	if err != nil {
		return err
	}
	text := string(data)
	if !module {
		var is bool
		if text, is = programOf(text); !is {
			return nil
		}
	}
	file := filepath.Join(tree.Dir, name)
	if !slices.ContainsFunc(c.programs, func(p [2]string) bool { return p[0] == file }) {
		c.programs = append(c.programs, [2]string{file, text})
	}
	return nil
}

// ofLoader reports whether a file is in a directory from which Salt's loader takes modules, such as _modules.
func ofLoader(name string) bool {
	dir, _, below := strings.Cut(name, "/")
	return below && slices.Contains([]string{"_modules", "_states", "_grains", "_renderers", "_pillar", "_returners",
		"_output", "_utils", "_tops"}, dir)
}

// salts matches the import of an SLS file, which #!pyobjects has beside what Python can parse.
var salts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^(\s*from\s+)(salt://\S+)`) })

// programOf reports whether an SLS file is a program in Python, and returns the text for Python's parser.
func programOf(text string) (string, bool) {
	line, _, _ := strings.Cut(text, "\n")
	pipe, _ := strings.CutPrefix(strings.TrimSpace(line), "#!")
	name, _, _ := strings.Cut(strings.TrimSpace(pipe), " ")
	if !slices.Contains([]string{"py", "pydsl", "pyobjects"}, name) || !strings.HasPrefix(line, "#!") {
		return "", false
	}
	return salts().ReplaceAllStringFunc(text, func(found string) string {
		start, url, _ := strings.Cut(found, "salt://")
		return start + strings.Repeat("_", len("salt://"+url))
	}), true
}

// parse adds the syntax errors of the files in Python to the findings. If python3 cannot compile them, a note says so.
func (c *compiler) parse(ctx context.Context, h *host.Host) error {
	if len(c.programs) == 0 {
		return nil
	}
	var pairs [][2]any
	for _, p := range c.programs {
		pairs = append(pairs, [2]any{p[0], []byte(p[1])})
	}
	input, err := json.Marshal(pairs)
	if err != nil {
		return err
	}
	out, err := h.Commands.Run(ctx, host.Command{Argv: []string{"python3", "-I", "-S", "-B", "-c", parser},
		Env: []string{"LANG=C.UTF-8", "LC_ALL=C.UTF-8"}, Stdin: string(input), Limit: parseTime, Quiet: true})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var found parsed
	if err == nil {
		err = json.Unmarshal([]byte(out.Stdout), &found)
	}
	if err != nil {
		c.unparsed(err, out)
		return nil
	}
	for _, e := range found.Errors {
		at := slices.IndexFunc(c.programs, func(p [2]string) bool { return p[0] == e.File })
		if at < 0 {
			continue
		}
		d := c.static.Add(diag.Pos{File: e.File, Line: e.Line, Col: e.Col}, "Python cannot parse this: %s", e.Message)
		d.WithHint(diag.Python, fmt.Sprintf("python3 %s is here; hosts use their own, 3.7 or newer", found.Version))
		d.Excerpt = diag.Excerpt(strings.ToValidUTF8(c.programs[at][1], "\ufffd"), e.Line, e.Col)
	}
	return nil
}

// unparsed adds the note that files were not checked.
func (c *compiler) unparsed(err error, out host.Output) {
	why := "python3 did not end as it should"
	switch {
	case errors.Is(err, exec.ErrNotFound):
		why = "there is no python3 here"
	case out.TimedOut:
		why = fmt.Sprintf("python3 did not end within %s", parseTime)
	}
	d := &diag.Diagnostic{HostOnly: true, Message: fmt.Sprintf("%s in Python not checked: %s",
		diag.Count(len(c.programs), "file"), why)}
	c.static = append(c.static, d.WithHint(diag.Python, "install python3 here to find syntax errors"))
}
