package compute

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// userData returns the user data of an instance in base64. An instance runs it at its first start.
func (l *Launch) userData(c *cloud.Cloud) (string, error) {
	given := 0
	for _, is := range []bool{l.UserData != "", l.CloudInit.Len() > 0, l.Bootstrap != nil} {
		if is {
			given++
		}
	}
	if given > 1 && (l.UserData != "" || l.CloudInit.Len() == 0) {
		return "", diag.Amazon.Hint(errors.New("user_data stands beside cloud_init or bootstrap"), "give one of them")
	}
	script := ""
	if l.Bootstrap != nil {
		m := cloud.MapOf(l.Bootstrap)
		if name, ok := l.Bootstrap.(string); ok {
			m = cloud.MapOf(c.Option(name))
		}
		if m == nil || c.Bootstrap == nil {
			return "", diag.Amazon.Hint(fmt.Errorf("bootstrap is %s, and a mapping was expected", value.Repr(l.Bootstrap)),
				"give store, agent, agent_digest and trust_root, or the name of a pillar that has them")
		}
		var err error
		if script, err = c.Bootstrap(m); err != nil {
			return "", err
		}
	}
	switch {
	case l.CloudInit.Len() > 0:
		text, err := multipart(l.CloudInit, script)
		return base64.StdEncoding.EncodeToString([]byte(text)), err
	case script != "":
		return base64.StdEncoding.EncodeToString([]byte(script)), nil
	}
	return base64.StdEncoding.EncodeToString([]byte(l.UserData)), nil
}

// multipart returns the MIME text from which cloud-init takes boothooks, scripts and cloud-config. script is its last
// part unless it is empty.
func multipart(m *value.Map, script string) (string, error) {
	type part struct{ kind, name, text string }
	var parts []part
	for _, kind := range m.Names() {
		switch kind {
		case "boothooks", "scripts":
			subtype := map[string]string{"boothooks": "cloud-boothook", "scripts": "x-shellscript"}[kind]
			for key, v := range cloud.MapOf(m.Value(kind)).All() {
				text := value.Str(v)
				if kind == "scripts" && !strings.HasPrefix(text, "#!") {
					text = "#!/bin/sh\n" + text
				}
				parts = append(parts, part{subtype, value.Str(key), text})
			}
		case "cloud-config":
			text, ok := m.Value(kind).(string)
			if !ok {
				text = "#cloud-config\n" + yaml.Dump(m.Value(kind), yaml.DumpOptions{Indent: 2, Width: 80, Collections: yaml.Block})
			}
			parts = append(parts, part{"cloud-config", "cloud-config", text})
		default:
			return "", diag.Amazon.Hint(fmt.Errorf("cloud_init has no %s", kind), "it has boothooks, scripts and cloud-config")
		}
	}
	if script != "" {
		parts = append(parts, part{"x-shellscript", "bootstrap", script})
	}
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%s\x00%s\x00%s\x00", p.kind, p.name, p.text)
	}
	boundary := "part-" + hex.EncodeToString(sum.Sum(nil)[:16])
	var b strings.Builder
	fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=\"%s\"\nMIME-Version: 1.0\n\n", boundary)
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\nContent-Type: text/%s; charset=\"utf-8\"\nMIME-Version: 1.0\n"+
			"Content-Transfer-Encoding: 8bit\nContent-Disposition: attachment; filename=%q\n\n%s\n", boundary, p.kind, p.name,
			strings.TrimSuffix(p.text, "\n"))
	}
	fmt.Fprintf(&b, "--%s--\n", boundary)
	return b.String(), nil
}
