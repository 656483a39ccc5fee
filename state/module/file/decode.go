package file

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// decode implements file.decode: it writes the decoded form of a base64 text to a file.
type decode struct {
	Name           string `sls:"name"`
	EncodedData    string `sls:"encoded_data"`
	ContentsPillar string `sls:"contents_pillar"`
	EncodingType   string `sls:"encoding_type"`
	Checksum       string `sls:"checksum"`

	family *family
	data   []byte
}

func (c *decode) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	var d module.Diff
	name, err := absolute(h, "name", c.Name)
	if err != nil {
		return d, err
	}
	c.Name = name
	if c.data, err = c.decoded(); err != nil {
		return d, err
	}
	kind, ok := algorithmBy(func(a algorithm) bool { return a.name == c.Checksum })
	if !ok {
		return d, diag.Argument.Hint(fmt.Errorf("the checksum %s is not known", c.Checksum),
			"it can be md5, sha1, sha224, sha256, sha384 or sha512")
	}
	is, err := sum{algorithm: kind}.of(bytes.NewReader(c.data))
	if err != nil {
		return d, err
	}
	d.Changes = value.NewMap("old", nil, "new", is.hex)
	d.Comment = "would write " + name
	if !isFile(h, name) {
		d.Planned = value.NewMap()
		return d, nil
	}
	info, err := h.Files.Stat(name)
	if err != nil {
		return d, err
	}
	if info.Readable(name) != nil && info.Size != int64(len(c.data)) { // another size means another content
		d.Changes.Set("old", "a file of "+diag.Size(info.Size))
		return d, nil
	}
	was, err := sumOfFile(ctx, h, name, kind)
	if err != nil {
		return d, err
	}
	if was.hex == is.hex {
		return module.Diff{Comment: name + " is as it should be"}, nil
	}
	d.Changes.Set("old", was.hex)
	return d, nil
}

// decoded returns the decoded text. Like Salt, it ignores characters that are not base64.
func (c *decode) decoded() ([]byte, error) {
	if c.EncodingType != "base64" {
		return nil, diag.Argument.Hint(fmt.Errorf("the encoding_type %s is not known", c.EncodingType),
			"it can only be base64")
	}
	text := c.EncodedData
	switch {
	case text != "" && c.ContentsPillar != "":
		return nil, diag.Contradiction.Hint(errors.New("both encoded_data and contents_pillar are given"),
			"keep one of them")
	case c.ContentsPillar != "":
		v, err := lookUp(c.family.Pillar, "pillar key", c.ContentsPillar, ":")
		if err != nil {
			return nil, err
		}
		text = value.Str(v)
	case text == "":
		return nil, diag.Argument.Hint(errors.New("there is nothing to decode"), "give encoded_data or contents_pillar")
	}
	letters := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '+' || r == '/' || r == '=' {
			return r
		}
		return -1
	}, text)
	data, err := base64.StdEncoding.DecodeString(letters)
	if err != nil {
		return nil, errors.New("the text is not base64") // the text may be a secret, so the error shows none of it
	}
	return data, nil
}

func (c *decode) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := h.Files.Write(c.Name, host.NewFile{Content: bytes.NewReader(c.data), UID: -1, GID: -1}); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "wrote " + c.Name}, nil
}
