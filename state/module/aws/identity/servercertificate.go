package identity

import (
	"context"
	"errors"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// serverCertificate implements boto_iam.server_cert_present and server_cert_absent.
type serverCertificate struct {
	cloud.Common
	absent  bool
	Name    string        `sls:"name"`
	Public  cloud.Content `sls:"public_key"`
	Private cloud.Content `sls:"private_key"`
	Chain   cloud.Content `sls:"cert_chain"`
	Path    string        `sls:"path"`
	Env     string        `sls:"__env__"`
}

// Check implements module.Resource.
func (s *serverCertificate) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	if err := s.read(ctx); err != nil {
		return module.Diff{}, err
	}
	return s.Planned(s.look(ctx))
}

// read replaces URLs of the tree by the texts of the files, and checks that these are certificates and keys.
func (s *serverCertificate) read(ctx context.Context) error {
	if s.absent {
		return nil
	}
	for _, part := range []struct {
		name  string
		field *cloud.Content
	}{{"public_key", &s.Public}, {"private_key", &s.Private}, {"cert_chain", &s.Chain}} {
		text, err := part.field.Read(ctx, s.Cloud, s.Env)
		if err != nil {
			return err
		}
		if !strings.Contains(text, "-----BEGIN ") && (text != "" || part.name != "cert_chain") {
			return diag.Amazon.Hint(errors.New(part.name+" is not PEM text"),
				"give the text of the file, such as of the pillar, or the salt:// URL of the file")
		}
		*part.field = cloud.Content(text)
	}
	return nil
}

func (s *serverCertificate) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := s.Cloud.Account(ctx, "iam", s.Arguments)
	if err != nil {
		return nil, err
	}
	p, client := cloud.NewPlan(), iamOf(a)
	out, err := client.GetServerCertificate(ctx, &iam.GetServerCertificateInput{ServerCertificateName: &s.Name})
	there := err == nil
	if err != nil && !cloud.HasCode(err, "NoSuchEntity") {
		return nil, cloud.Failed("reading server certificate", s.Name, err)
	}
	switch {
	case there && s.absent:
		id := ""
		if meta := out.ServerCertificate.ServerCertificateMetadata; meta != nil {
			id = sdk.ToString(meta.ServerCertificateId)
		}
		p.Remove(id, value.NewMap("server_certificate", s.Name))
		p.Then("server certificate deleted", func(ctx context.Context) error {
			_, err := client.DeleteServerCertificate(ctx, &iam.DeleteServerCertificateInput{ServerCertificateName: &s.Name})
			return cloud.Failed("deleting server certificate", s.Name, err)
		})
	case there && !sameText(sdk.ToString(out.ServerCertificate.CertificateBody), string(s.Public)):
		p.Warnings = append(p.Warnings, "public_key differs and cannot be changed: give the new certificate another name")
	case !there && !s.absent:
		p.Create(value.NewMap("server_certificate", s.Name))
		p.Then("server certificate uploaded", func(ctx context.Context) error {
			_, err := client.UploadServerCertificate(ctx, &iam.UploadServerCertificateInput{ServerCertificateName: &s.Name,
				CertificateBody: sdk.String(string(s.Public)), PrivateKey: sdk.String(string(s.Private)),
				CertificateChain: cloud.Optional(string(s.Chain)), Path: cloud.Optional(s.Path)})
			return cloud.Failed("uploading server certificate", s.Name, err)
		})
	}
	return p, nil
}

// sameText reports whether two texts differ at most in the white space around them.
func sameText(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }
