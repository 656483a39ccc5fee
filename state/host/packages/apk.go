package packages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/packages/order"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// apk is the package manager of Alpine Linux. The file /etc/apk/world lists the wanted packages; apk removes packages
// that none of them needs. A package that the world lists with a version stays at that version, so it is on hold.
type apk struct{ client }

const apkWorld = "/etc/apk/world"

func (a *apk) family() string { return "apk" }

func (a *apk) compare(x, y string) int { return order.APK(x, y) }

func (a *apk) describe(file io.Reader) (host.Package, error) { return describePkginfo(file) }

func (a *apk) installed() (*host.Inventory, error) {
	pins, err := a.pins()
	if err != nil {
		return nil, err
	}
	var packages []host.Package
	for _, file := range []string{"/lib/apk/db/installed", "/usr/lib/apk/db/installed"} {
		data, err := a.files.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the package database: %w", err)
		}
		if packages, err = parseInstalled(data); err != nil {
			return nil, fmt.Errorf("reading the package database %s: %w", file, err)
		}
		break // if there are two, one is a link to the other
	}
	for i := range packages {
		packages[i].Held = pins[packages[i].Name] != ""
	}
	return host.InventoryOf("", host.ArchNames{}, packages), nil
}

// parseInstalled parses stanzas of lines such as P:name and V:version, separated by empty lines.
func parseInstalled(data []byte) ([]host.Package, error) {
	var packages []host.Package
	one := host.Package{State: host.InstalledPackage}
	end := func() error {
		if one.Name == "" && one.Version == "" {
			return nil
		}
		if one.Name == "" || one.Version == "" {
			return notUnderstood("apk", "a package without a name or a version: "+one.Name+one.Version)
		}
		packages = append(packages, one)
		one = host.Package{State: host.InstalledPackage}
		return nil
	}
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, "\n")
		if len(line) == 0 {
			if err := end(); err != nil {
				return nil, err
			}
		} else if len(line) > 1 && line[1] == ':' {
			apkField(&one, line[0], string(line[2:]))
		}
	}
	return packages, end()
}

func apkField(p *host.Package, key byte, v string) {
	switch key {
	case 'P':
		p.Name = v
	case 'V':
		p.Version = v
	case 'p':
		for item := range strings.FieldsSeq(v) {
			if !strings.HasPrefix(item, "so:") && !strings.HasPrefix(item, "pc:") {
				p.Provides = append(p.Provides, item)
			}
		}
	}
}

// pins returns the versions of the packages that the world lists with a version, by name.
func (a *apk) pins() (map[string]string, error) {
	data, err := a.files.ReadFile(apkWorld)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading which packages are on hold: %w", err)
	}
	return parseWorld(string(data)), nil
}

func parseWorld(text string) map[string]string {
	pins := map[string]string{}
	pinned := regexp.MustCompile(`^([^=<>~@!]+)(?:@[^=<>~]+)?=([^=<>~@]+)`)
	for word := range strings.FieldsSeq(text) {
		if m := pinned.FindStringSubmatch(word); m != nil {
			pins[m[1]] = m[2]
		}
	}
	return pins
}

// query runs apk to read the indexes of the last refresh.
func (a *apk) query(ctx context.Context, what string, args ...string) (string, error) {
	out, err := a.insist(ctx, true, apkLocked, append([]string{"apk", "--no-network", "--no-progress"}, args...)...)
	if err != nil {
		return "", err
	}
	if out.Code != 0 {
		return "", orPassing(ctx, apkLocked, out, whyFailed(what, out, apkClues()))
	}
	return out.Stdout, nil
}

func (a *apk) offers(ctx context.Context, names []string, release string) (map[string]host.Offer, error) {
	text, err := a.query(ctx, "querying the repositories", append([]string{"policy", "--"}, names...)...)
	if err != nil {
		return nil, err
	}
	return parseAPKPolicy(text, release)
}

// parseAPKPolicy parses the output of apk policy:
//
//	foo policy:
//	  1.0-r0:
//	    lib/apk/db/installed
//	    https://example.com/main
//	    @edge https://example.com/edge
//
// It leaves out versions that are merely installed, and those of a repository with another tag.
func parseAPKPolicy(text, tag string) (map[string]host.Offer, error) {
	offers := map[string]host.Offer{}
	name, version := "", ""
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch depth := len(line) - len(strings.TrimLeft(line, " ")); {
		case trimmed == "":
		case depth == 0:
			found, ok := strings.CutSuffix(trimmed, " policy:")
			if !ok {
				return nil, notUnderstood("apk", line)
			}
			name, version = found, ""
			offers[name] = host.Offer{}
		case depth == 2:
			version = strings.TrimSuffix(trimmed, ":")
		case name == "" || version == "":
			return nil, notUnderstood("apk", line)
		case !strings.HasSuffix(trimmed, "lib/apk/db/installed"):
			of, _, tagged := strings.Cut(strings.TrimPrefix(trimmed, "@"), " ")
			tagged = tagged && trimmed[0] == '@'
			if o := offers[name]; (!tagged || of == tag) && !slices.Contains(o.Versions, version) {
				o.Versions = append(o.Versions, version)
				offers[name] = newestFirst(o, order.APK)
			}
		}
	}
	return offers, nil
}

func (a *apk) names(ctx context.Context) ([]string, error) {
	text, err := a.query(ctx, "listing the packages of the repositories", "search", "--quiet")
	names := strings.Fields(text)
	slices.Sort(names)
	return slices.Compact(names), err
}

// cached returns the packages in apk's cache, by the names of the files: name-version.hash.apk.
func (a *apk) cached() ([]host.Package, error) {
	names, err := a.files.ReadDir("/etc/apk/cache")
	if err != nil {
		return nil, nil // without that directory apk keeps nothing
	}
	var packages []host.Package
	file := regexp.MustCompile(`^(.+)-(\d[^-]*-r\d+)\.[0-9a-f]+\.apk$`)
	for _, name := range names {
		if m := file.FindStringSubmatch(name); m != nil {
			packages = append(packages, host.Package{Name: m[1], Version: m[2]})
		}
	}
	return packages, nil
}

func (a *apk) refreshedAt() time.Time { return a.newest("/var/cache/apk", "/etc/apk/cache") }

func (a *apk) repositoriesAt() time.Time {
	return a.newest("/etc/apk/repositories", "/etc/apk/repositories.d")
}

// refresh fetches the indexes. A repository that does not answer is returned as a warning; the others are used.
func (a *apk) refresh(ctx context.Context) ([]string, error) {
	out, err := a.change(ctx, "refreshing the package indexes", apkLocked, "apk", "--no-progress", "update")
	if err != nil {
		return nil, err
	}
	if out.Code != 0 && !strings.Contains(out.Stdout, "distinct packages available") {
		return nil, orPassing(ctx, apkLocked, out, whyFailed("refreshing the package indexes", out, apkClues()))
	}
	var warnings []string
	for line := range strings.SplitSeq(out.Stderr+"\n"+out.Stdout, "\n") {
		for _, kind := range []string{"WARNING: ", "ERROR: "} {
			if text, ok := strings.CutPrefix(line, kind); ok {
				warnings = append(warnings, redact.URLs(text))
			}
		}
	}
	return warnings, nil
}

// hold pins packages at their installed versions in the world, or removes the versions from the world.
func (a *apk) hold(ctx context.Context, names []string, held bool) error {
	if len(names) == 0 {
		return nil
	}
	v, err := a.installed()
	if err != nil {
		return err
	}
	argv := []string{"apk", "--no-network", "--no-progress", "add", "--"}
	for _, name := range names {
		version := v.Version(name)
		if held && version == "" {
			return fmt.Errorf("package %s cannot be put on hold: it is not installed", name)
		}
		if held {
			name += "=" + version
		}
		argv = append(argv, name)
	}
	out, err := a.change(ctx, "putting packages on hold", apkLocked, argv...)
	if err == nil && out.Code != 0 {
		err = orPassing(ctx, apkLocked, out, whyFailed("putting packages on hold", out, apkClues()))
	}
	return err
}
