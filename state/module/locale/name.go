package locale

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// name is the name of a locale split into its parts: language_TERRITORY.codeset@modifier, followed in Debian's
// lists by a blank and the charmap.
type name struct{ language, territory, codeset, modifier, charmap string }

func parseName(text string) (n name) {
	text, n.charmap, _ = strings.Cut(strings.TrimSpace(text), " ")
	text, n.modifier, _ = strings.Cut(text, "@")
	text, n.codeset, _ = strings.Cut(text, ".")
	n.language, n.territory, _ = strings.Cut(text, "_")
	return n
}

// base returns the name of the locale's definition.
func (n name) base() string {
	if n.territory == "" {
		return n.language
	}
	return n.language + "_" + n.territory
}

// String returns the name without a charmap.
func (n name) String() string {
	text := n.base()
	if n.codeset != "" {
		text += "." + n.codeset
	}
	if n.modifier != "" {
		text += "@" + n.modifier
	}
	return text
}

// normal returns the normal form of a name: en_US.UTF-8 and en_US.utf8 are the same locale.
func normal(text string) string {
	n := parseName(text)
	n.charmap, n.territory = "", strings.ToUpper(n.territory)
	n.codeset = strings.ReplaceAll(strings.ToLower(n.codeset), "-", "")
	return n.String()
}

// list returns the installed locales.
func list(ctx context.Context, h *host.Host) (map[string]bool, error) {
	out, err := h.Tool(ctx, host.Tool{Argv: []string{"locale", "-a"}, Package: "libc-bin"})
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for l := range strings.Lines(out) {
		names[normal(l)] = true
	}
	return names, nil
}
