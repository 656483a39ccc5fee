package locale

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const (
	supported = "/usr/share/i18n/SUPPORTED" // the locales that can be generated
	wanted    = "/etc/locale.gen"           // the locales to generate
)

// present implements locale.present.
type present struct {
	Name string `sls:"name"`

	known *known
}

func (p *present) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := valid(p.Name); err != nil {
		return module.Diff{}, err
	}
	has, err := p.known.has(ctx, h, p.Name)
	if err != nil {
		return module.Diff{}, err
	}
	if has {
		return module.Diff{Comment: p.Name + " is there"}, nil
	}
	if _, err := p.entry(h); err != nil && !errors.Is(err, errNoSources) {
		return module.Diff{}, err
	}
	return module.Diff{Changes: value.NewMap("locale", p.Name), Planned: value.NewMap(), Comment: p.Name +
		" would be made"}, nil
}

func valid(text string) error {
	if n := parseName(text); n.language == "" || strings.ContainsAny(text, "/\n\\#") || strings.HasPrefix(text, "-") {
		return diag.Argument.Hint(fmt.Errorf("%q is not a locale", text), "write it like en_US.UTF-8")
	}
	return nil
}

// errNoSources is returned if the definitions of locales are not installed.
var errNoSources = errors.New("the definitions of locales are not installed")

// entry returns the line of the list of all locales that matches the declared name.
func (p *present) entry(h *host.Host) (string, error) {
	all, err := host.Parsed(h, supported, func(text string) []string { return strings.Split(text, "\n") })
	if errors.Is(err, fs.ErrNotExist) {
		return "", diag.Prerequisite.Hint(errNoSources, "install the package locales in a state that this one requires")
	}
	if err != nil {
		return "", err
	}
	meant := parseName(p.Name)
	var names []string
	for _, l := range all {
		n := parseName(l)
		names = append(names, n.String())
		if normal(l) == normal(p.Name) && (meant.charmap == "" || meant.charmap == n.charmap) {
			return strings.TrimSpace(l), nil
		}
	}
	hint := "the names are those in " + supported
	if like := diag.DidYouMean(p.Name, names); like != "" {
		hint = like
	}
	return "", diag.Setting.Hint(fmt.Errorf("there is no locale %s", p.Name), "%s", hint)
}

func (p *present) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := p.make(ctx, h); err != nil {
		return module.Report{}, err
	}
	has, err := p.known.has(ctx, h, p.Name)
	if err != nil {
		return module.Report{}, err
	}
	if !has {
		return module.Report{}, diag.Setting.Hint(fmt.Errorf("%s was made, and does not exist", p.Name),
			"run `locale-gen` on the host and read its output")
	}
	return module.Report{Changes: d.Changes, Comment: p.Name + " was made"}, nil
}

// make generates the locale with Debian's locale-gen, which generates the missing locales of its list, or with
// localedef, which is part of glibc.
func (p *present) make(ctx context.Context, h *host.Host) error {
	made := host.Subject{Kind: host.KindFile, Name: "/usr/lib/locale/locale-archive"}
	if _, ok := h.Which("locale-gen"); !ok {
		n := parseName(p.Name)
		codeset := n.codeset
		if codeset == "" {
			codeset = "UTF-8"
		}
		_, err := h.Tool(ctx, host.Tool{Argv: []string{"localedef", "-i", n.base(), "-f", codeset, n.String()},
			Changes: made, Package: "locales"})
		return host.Failed(diag.Setting, err, "making "+p.Name,
			"the definitions of languages are in a package: locales, or glibc-locale-source")
	}
	entry, err := p.entry(h)
	if err != nil {
		return err
	}
	text, err := h.Files.ReadFile(wanted)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if with := listed(string(text), entry); with != string(text) {
		if err := h.WriteText(wanted, with); err != nil {
			return err
		}
	}
	_, err = h.Tool(ctx, host.Tool{Argv: []string{"locale-gen", "--keep-existing"}, Changes: made})
	return host.Failed(diag.Setting, err, "making "+p.Name, "run `locale-gen` on the host and read its output")
}

// listed returns the list of locales with an entry: it uncomments its line or appends one.
func listed(text, entry string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		if bare := strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(l), "# ")); bare == entry {
			lines[i] = entry + "\n"
			return strings.Join(lines, "")
		}
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + entry + "\n"
}
