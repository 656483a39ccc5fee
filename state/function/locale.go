package function

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

type locale struct{ *Facts }

func localeTable(f *Facts) Table {
	l := locale{f}
	return Table{
		"locale.get_locale": Of("", l.get),
		"locale.list_avail": Of("", l.list),
		"locale.avail":      Of("locale", l.has),
	}
}

// get is the language that the system's files set; "" where they set none.
func (l locale) get() (string, error) {
	for _, file := range []string{"/etc/locale.conf", "/etc/default/locale", "/etc/sysconfig/i18n", "/etc/sysconfig/language"} {
		text, err := readText(l.Host, file)
		if err != nil && !absent(err) {
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
	text, err := l.answer(ctx, "locale", "-a")
	return value.SplitLines(text, false), err
}

// has compares names as locale(1) does: en_US.UTF-8 and en_US.utf8 are one.
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

// localeActs set and generate locales.
func localeActs(f *Facts) Table {
	return byState(f, map[string]deed{
		"locale.set_locale": {signature: "locale", state: "locale.system", rename: map[string]string{"locale": "name"}, yes: true},
		"locale.gen_locale": {signature: "locale", state: "locale.present", rename: map[string]string{"locale": "name"}, yes: true},
	})
}
