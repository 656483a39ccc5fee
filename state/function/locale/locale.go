// Package locale implements locale.*: the locales of the host, and which one it uses.
package locale

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type locale struct{ *function.Facts }

// Functions returns the functions of locale that templates may call.
func Functions(f *function.Facts) function.Table {
	l := locale{f}
	return function.Table{
		"locale.get_locale": function.Of("", l.get),
		"locale.list_avail": function.Of("", l.list),
		"locale.avail":      function.Of("locale", l.has),
	}
}

// get returns the language that the system's files set, or "".
func (l locale) get() (string, error) {
	for _, file := range []string{"/etc/locale.conf", "/etc/default/locale", "/etc/sysconfig/i18n",
		"/etc/sysconfig/language"} {
		text, err := function.ReadText(l.Host, file)
		if err != nil && !function.Absent(err) {
			return "", err
		}
		for line := range strings.Lines(text) {
			name, v, _ := strings.Cut(strings.TrimSpace(line), "=")
			if name == "LANG" || name == "RC_LANG" {
				return strings.ReplaceAll(v, `"`, ""), nil
			}
		}
	}
	return "", nil
}

func (l locale) list(ctx context.Context) ([]string, error) {
	text, err := l.Stdout(ctx, "locale", "-a")
	return value.SplitLines(text, false), err
}

// has reports whether a locale exists. Names are compared as locale(1) does: en_US.UTF-8 and en_US.utf8 are equal.
func (l locale) has(ctx context.Context, name string) (bool, error) {
	all, err := l.list(ctx)
	for _, known := range all {
		if normalLocale(known) == normalLocale(name) {
			return true, err
		}
	}
	return false, err
}

func normalLocale(name string) string {
	name, _, _ = strings.Cut(name, " ")
	name, modifier, _ := strings.Cut(name, "@")
	name, codeset, _ := strings.Cut(name, ".")
	language, territory, _ := strings.Cut(name, "_")
	if territory != "" {
		language += "_" + strings.ToUpper(territory)
	}
	if codeset != "" {
		language += "." + strings.ReplaceAll(strings.ToLower(codeset), "-", "")
	}
	if modifier != "" {
		language += "@" + modifier
	}
	return language
}

// Acting returns the functions that set and generate locales.
func Acting(f *function.Facts) function.Table {
	return function.StateFunctions(f, map[string]function.ByState{
		"locale.set_locale": {Signature: "locale", State: "locale.system", Rename: map[string]string{"locale": "name"},
			True: true},
		"locale.gen_locale": {Signature: "locale", State: "locale.present", Rename: map[string]string{"locale": "name"},
			True: true},
	})
}
