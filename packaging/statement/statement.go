// Package statement writes the documents beside a release: the list of its content (SPDX 2.3) and its origin (an
// in-toto statement with SLSA provenance 1.0).
//
// Both contain only facts of the build: files with their digests, Python and Node packages with the versions in
// their metadata, the source's commit, the builder. They contain no time and no machine name, so they are
// reproducible.
package statement

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// About describes a build.
type About struct {
	Name    string
	Version string
	Content string            // digest of the release's content, sha256:HEX
	Builder string            // of the recipe
	Base    string            // system that it was built in
	Source  Source            // zero if unknown
	Tool    string            // version of the program that built it
	Outputs map[string]string // file names and their SHA-256 in hexadecimal
}

// Source is the commit of a tree.
type Source struct {
	URI      string
	Commit   string
	Modified bool // the tree has uncommitted changes
}

func (s Source) descriptor() map[string]any {
	d := map[string]any{"uri": s.URI, "digest": map[string]string{"gitCommit": s.Commit}}
	if s.Modified {
		d["annotations"] = map[string]any{"modified": true}
	}
	return d
}

// SPDX returns the list of the content of a release.
func SPDX(ctx context.Context, about About, release fs.FS) ([]byte, error) {
	components, err := Components(ctx, release)
	if err != nil {
		return nil, err
	}
	id := "SPDXRef-" + about.Name
	packages := []map[string]any{{
		"SPDXID": id, "name": about.Name, "versionInfo": about.Version, "downloadLocation": "NOASSERTION",
		"filesAnalyzed": false,
		"checksums": []map[string]string{{"algorithm": "SHA256",
			"checksumValue": strings.TrimPrefix(about.Content, "sha256:")}},
	}}
	relations := []map[string]string{{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
		"relatedSpdxElement": id}}
	for _, c := range components {
		ref := "SPDXRef-" + short(c.PURL)
		packages = append(packages, map[string]any{
			"SPDXID": ref, "name": c.Name, "versionInfo": c.Version, "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
			"externalRefs": []map[string]string{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
				"referenceLocator": c.PURL}},
		})
		relations = append(relations, map[string]string{"spdxElementId": id, "relationshipType": "CONTAINS",
			"relatedSpdxElement": ref})
	}
	return document(map[string]any{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
		"name": about.Name + "-" + about.Version,
		"documentNamespace": "https://corpus-agent.invalid/spdx/" + about.Name + "/" +
			strings.TrimPrefix(about.Content, "sha256:"),
		"creationInfo": map[string]any{"created": "1970-01-01T00:00:00Z", "creators": []string{"Tool: corpus-" + about.Tool}},
		"packages":     packages, "relationships": relations,
	})
}

func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Provenance returns the origin of a release.
func Provenance(about About) ([]byte, error) {
	subjects := []map[string]any{}
	for _, name := range sortedNames(about.Outputs) {
		subjects = append(subjects, map[string]any{"name": name, "digest": map[string]string{"sha256": about.Outputs[name]}})
	}
	sources := []map[string]any{}
	if about.Source.URI != "" {
		sources = append(sources, about.Source.descriptor())
	}
	return document(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":            "https://corpus-agent.invalid/build/v1",
				"externalParameters":   map[string]any{"builder": about.Builder, "base": about.Base, "version": about.Version},
				"internalParameters":   map[string]any{"content": about.Content},
				"resolvedDependencies": sources,
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": "corpus",
				"version": map[string]string{"corpus": about.Tool}}},
		},
	})
}

func sortedNames(m map[string]string) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func document(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}

// Content returns the digest of the content of a release: every path with its kind, whether it is executable, and
// its bytes or target. It does not depend on the format in which the release is packed. skip names the file that
// contains the digest itself.
func Content(ctx context.Context, release fs.FS, skip string) (string, error) {
	listing, err := Listing(ctx, release)
	if err != nil {
		return "", err
	}
	delete(listing, skip)
	delete(listing, path.Dir(skip))
	sum := sha256.New()
	for _, name := range sortedNames(listing) {
		line, err := json.Marshal([]string{name, listing[name]})
		if err != nil {
			return "", err
		}
		_, _ = sum.Write(append(line, '\n')) // writing to a hash does not fail
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// Listing returns every path of a release with its kind and the digest of its bytes or its target.
func Listing(ctx context.Context, release fs.FS) (map[string]string, error) {
	listing := map[string]string{}
	err := fs.WalkDir(release, ".", func(name string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || name == "." {
			return err
		}
		listing[name], err = entry(ctx, release, name, d)
		return err
	})
	return listing, err
}

func entry(ctx context.Context, release fs.FS, name string, d fs.DirEntry) (string, error) {
	info, err := d.Info()
	if err != nil {
		return "", err
	}
	var kind, digest string
	switch {
	case d.IsDir():
		kind = "dir"
	case d.Type() == fs.ModeSymlink:
		kind = "link"
		digest, err = fs.ReadLink(release, name)
	default:
		kind = "file"
		if info.Mode()&0o111 != 0 {
			kind = "program"
		}
		digest, err = fileDigest(ctx, release, name)
	}
	return kind + " " + digest, err
}

func fileDigest(ctx context.Context, release fs.FS, name string) (string, error) {
	f, err := release.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, artifact.Stoppable(ctx, f)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
