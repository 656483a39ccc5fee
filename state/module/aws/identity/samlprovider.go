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

// samlProvider implements boto_iam.saml_provider_present and saml_provider_absent.
type samlProvider struct {
	cloud.Common
	absent   bool
	Name     string        `sls:"name"`
	Metadata cloud.Content `sls:"saml_metadata_document"`
	Env      string        `sls:"__env__"`
}

// Check implements module.Resource.
func (s *samlProvider) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return s.Planned(s.look(ctx))
}

func (s *samlProvider) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := s.Cloud.Account(ctx, "iam", s.Arguments)
	if err != nil {
		return nil, err
	}
	metadata, err := s.Metadata.Read(ctx, s.Cloud, s.Env)
	if err != nil {
		return nil, err
	}
	if !s.absent && !strings.HasPrefix(strings.TrimSpace(metadata), "<") {
		return nil, diag.Amazon.Hint(errors.New("saml_metadata_document is not XML"),
			"give the text of the document, or the salt:// URL of the file")
	}
	client, p := iamOf(a), cloud.NewPlan()
	arn, born, err := s.find(ctx, client)
	switch {
	case err != nil:
		return nil, err
	case arn == "" && !s.absent:
		p.Create(value.NewMap("saml_provider", s.Name))
		p.Then("SAML provider made", func(ctx context.Context) error {
			_, err := client.CreateSAMLProvider(ctx, &iam.CreateSAMLProviderInput{Name: &s.Name,
				SAMLMetadataDocument: &metadata})
			return cloud.Failed("making SAML provider", s.Name, err)
		})
	case arn != "" && s.absent:
		p.Remove(born, value.NewMap("saml_provider", s.Name))
		p.Then("SAML provider deleted", func(ctx context.Context) error {
			_, err := client.DeleteSAMLProvider(ctx, &iam.DeleteSAMLProviderInput{SAMLProviderArn: &arn})
			return cloud.Failed("deleting SAML provider", s.Name, err)
		})
	case arn != "":
		return p, s.drift(ctx, p, client, arn, metadata)
	}
	return p, nil
}

// find returns the ARN of the provider, alone and with the time of its creation, or "" if there is none.
func (s *samlProvider) find(ctx context.Context, client *iam.Client) (arn, born string, err error) {
	out, err := client.ListSAMLProviders(ctx, &iam.ListSAMLProvidersInput{})
	if err != nil {
		return "", "", cloud.Failed("looking for SAML provider", s.Name, err)
	}
	for _, one := range out.SAMLProviderList {
		if arn := sdk.ToString(one.Arn); strings.HasSuffix(arn, ":saml-provider/"+s.Name) {
			return arn, cloud.Born(one.Arn, one.CreateDate), nil
		}
	}
	return "", "", nil
}

// drift plans another metadata document. Plans show its size and not its content, which is long.
func (s *samlProvider) drift(ctx context.Context, p *cloud.Plan, client *iam.Client, arn, metadata string) error {
	out, err := client.GetSAMLProvider(ctx, &iam.GetSAMLProviderInput{SAMLProviderArn: &arn})
	if err != nil {
		return cloud.Failed("reading SAML provider", s.Name, err)
	}
	old := sdk.ToString(out.SAMLMetadataDocument)
	if sameText(old, metadata) {
		return nil
	}
	p.Differ("saml_metadata_document", diag.Size(int64(len(old))), diag.Size(int64(len(metadata))))
	p.Then("metadata document set", func(ctx context.Context) error {
		_, err := client.UpdateSAMLProvider(ctx, &iam.UpdateSAMLProviderInput{SAMLProviderArn: &arn,
			SAMLMetadataDocument: &metadata})
		return cloud.Failed("setting the metadata document of SAML provider", s.Name, err)
	})
	return nil
}
