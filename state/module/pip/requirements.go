package pip

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module/pep440"
)

// requirements parses a requirements file and those that it includes. known is false if a line can only be
// evaluated by pip.
func (p *pip) requirements(ctx context.Context, h *host.Host, file string,
	depth int) (list []pep440.Requirement, known bool, err error) {
	text, err := p.text(ctx, h, file)
	if err != nil {
		return nil, false, err
	}
	known = true
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if i := strings.Index(line, " #"); i >= 0 {
			line = line[:i]
		}
		line = strings.TrimSpace(line)
		included, isFile := cutAny(line, "-r ", "--requirement ", "--requirement=", "-r")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case isFile && depth < 10:
			if !path.IsAbs(included) && !strings.Contains(included, "://") {
				included = path.Join(path.Dir(file), included)
			}
			more, moreKnown, err := p.requirements(ctx, h, included, depth+1)
			if err != nil {
				return nil, false, err
			}
			list, known = append(list, more...), known && moreKnown
		case strings.HasPrefix(line, "-e"), strings.HasPrefix(line, "-c"), strings.HasPrefix(line, "--editable"),
			strings.HasPrefix(line, "--constraint"):
			known = false
		case strings.HasPrefix(line, "-"): // options such as the index
		default:
			line, _, _ = strings.Cut(line, " --hash")
			r := pep440.ParseRequirement(line)
			known = known && r.Name != "" && !strings.Contains(line, ";")
			list = append(list, r)
		}
	}
	return list, known, nil
}

func cutAny(s string, prefixes ...string) (string, bool) {
	for _, prefix := range prefixes {
		if rest, ok := strings.CutPrefix(s, prefix); ok && !strings.HasPrefix(s, "--requirement-") {
			return strings.TrimSpace(rest), true
		}
	}
	return s, false
}

// text returns the content of a file of the state tree or the host.
func (p *pip) text(ctx context.Context, h *host.Host, file string) (string, error) {
	if strings.Contains(file, "://") {
		data, err := p.sources.Source(ctx, file, p.Env)
		return string(data), err
	}
	if !path.IsAbs(file) && p.Cwd != "" {
		file = path.Join(p.Cwd, file)
	}
	data, err := h.Files.ReadFile(file)
	if err != nil {
		return "", diag.Prerequisite.Hint(fmt.Errorf("reading requirements: %w", err),
			"require the state that makes the file, or write salt://")
	}
	return string(data), nil
}
