package aws_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// iamMembers imitates the users and groups of IAM, with their policies, passwords and access keys. Some requests after
// the creation do not find a user or group yet, and some lists do not show it.
type iamMembers struct {
	all map[string]*iamMember // by "user NAME" or "group NAME"
	lag int
}

type iamMember struct {
	name, path string
	inline     map[string]string
	attached   []string // ARNs
	groups     []string // of a user
	signsIn    bool
	keys       []string // IDs of the access keys of a user
	devices    []string // serial numbers of the MFA devices of a user
	unseen     lag      // requests that do not find it yet
	unlisted   lag      // lists that do not show it yet
}

func newIAMMembers(reads int) *iamMembers {
	return &iamMembers{all: map[string]*iamMember{}, lag: reads}
}

// one finds a user or group for a request.
func (s *iamMembers) one(kind string, name *string) (*iamMember, error) {
	if m := s.all[kind+" "+*name]; m != nil && m.unseen.over() {
		return m, nil
	}
	return nil, fault("NoSuchEntity")
}

func (s *iamMembers) create(kind string, name, path *string) error {
	if s.all[kind+" "+*name] != nil {
		return fault("EntityAlreadyExists")
	}
	s.all[kind+" "+*name] = &iamMember{name: *name, path: sdk.ToString(path), inline: map[string]string{},
		unseen: lag{s.lag}}
	return nil
}

// remove deletes a user or group, which has to be empty.
func (s *iamMembers) remove(kind string, name *string) error {
	m, err := s.one(kind, name)
	if err != nil {
		return err
	}
	for _, u := range s.all {
		if kind == "group" && slices.Contains(u.groups, *name) {
			return fault("DeleteConflict")
		}
	}
	if len(m.inline)+len(m.attached)+len(m.groups)+len(m.keys)+len(m.devices) > 0 || m.signsIn {
		return fault("DeleteConflict")
	}
	delete(s.all, kind+" "+*name)
	return nil
}

func (s *iamMembers) answer(in any) (any, error) {
	switch in := in.(type) {
	case *iam.GetAccountAuthorizationDetailsInput:
		if slices.Contains(in.Filter, types.EntityTypeUser) {
			return s.list(in)
		}
		return nil, nil
	case *iam.CreateUserInput:
		return &iam.CreateUserOutput{}, s.create("user", in.UserName, in.Path)
	case *iam.CreateGroupInput:
		return &iam.CreateGroupOutput{}, s.create("group", in.GroupName, in.Path)
	case *iam.GetUserInput:
		_, err := s.one("user", in.UserName)
		return &iam.GetUserOutput{User: &types.User{UserName: in.UserName}}, err
	case *iam.GetGroupInput:
		_, err := s.one("group", in.GroupName)
		return &iam.GetGroupOutput{Group: &types.Group{GroupName: in.GroupName}}, err
	case *iam.DeleteUserInput:
		return &iam.DeleteUserOutput{}, s.remove("user", in.UserName)
	case *iam.DeleteGroupInput:
		return &iam.DeleteGroupOutput{}, s.remove("group", in.GroupName)
	case *iam.AddUserToGroupInput:
		u, err := s.one("user", in.UserName)
		if err == nil {
			_, err = s.one("group", in.GroupName)
		}
		if err == nil && !slices.Contains(u.groups, *in.GroupName) {
			u.groups = append(u.groups, *in.GroupName)
		}
		return &iam.AddUserToGroupOutput{}, err
	case *iam.RemoveUserFromGroupInput:
		u, err := s.one("user", in.UserName)
		if err == nil {
			u.groups, err = removed(u.groups, *in.GroupName)
		}
		return &iam.RemoveUserFromGroupOutput{}, err
	}
	for _, part := range []func(any) (any, error){s.answerInline, s.answerAttached, s.answerSecrets} {
		if out, err := part(in); out != nil || err != nil {
			return out, err
		}
	}
	return nil, nil
}

// removed returns a list without an item, which has to be in it.
func removed(all []string, one string) ([]string, error) {
	i := slices.Index(all, one)
	if i < 0 {
		return all, fault("NoSuchEntity")
	}
	return slices.Delete(slices.Clone(all), i, i+1), nil
}

func (s *iamMembers) answerInline(in any) (any, error) {
	put := func(kind string, name, policy, text *string) error {
		m, err := s.one(kind, name)
		if err == nil {
			m.inline[*policy] = *text
		}
		return err
	}
	drop := func(kind string, name, policy *string) error {
		m, err := s.one(kind, name)
		if err != nil || m.inline[*policy] == "" {
			return fault("NoSuchEntity")
		}
		delete(m.inline, *policy)
		return nil
	}
	switch in := in.(type) {
	case *iam.PutUserPolicyInput:
		return &iam.PutUserPolicyOutput{}, put("user", in.UserName, in.PolicyName, in.PolicyDocument)
	case *iam.PutGroupPolicyInput:
		return &iam.PutGroupPolicyOutput{}, put("group", in.GroupName, in.PolicyName, in.PolicyDocument)
	case *iam.DeleteUserPolicyInput:
		return &iam.DeleteUserPolicyOutput{}, drop("user", in.UserName, in.PolicyName)
	case *iam.DeleteGroupPolicyInput:
		return &iam.DeleteGroupPolicyOutput{}, drop("group", in.GroupName, in.PolicyName)
	}
	return nil, nil
}

func (s *iamMembers) answerAttached(in any) (any, error) {
	attach := func(kind string, name, arn *string) error {
		m, err := s.one(kind, name)
		if err == nil && !slices.Contains(m.attached, *arn) {
			m.attached = append(m.attached, *arn)
		}
		return err
	}
	detach := func(kind string, name, arn *string) error {
		m, err := s.one(kind, name)
		if err == nil {
			m.attached, err = removed(m.attached, *arn)
		}
		return err
	}
	switch in := in.(type) {
	case *iam.AttachUserPolicyInput:
		return &iam.AttachUserPolicyOutput{}, attach("user", in.UserName, in.PolicyArn)
	case *iam.AttachGroupPolicyInput:
		return &iam.AttachGroupPolicyOutput{}, attach("group", in.GroupName, in.PolicyArn)
	case *iam.DetachUserPolicyInput:
		return &iam.DetachUserPolicyOutput{}, detach("user", in.UserName, in.PolicyArn)
	case *iam.DetachGroupPolicyInput:
		return &iam.DetachGroupPolicyOutput{}, detach("group", in.GroupName, in.PolicyArn)
	}
	return nil, nil
}

// answerSecrets answers requests for the password, the access keys and the MFA devices of a user.
func (s *iamMembers) answerSecrets(in any) (any, error) {
	switch in := in.(type) {
	case *iam.GetLoginProfileInput:
		m, err := s.one("user", in.UserName)
		if err == nil && !m.signsIn {
			err = fault("NoSuchEntity")
		}
		return &iam.GetLoginProfileOutput{}, err
	case *iam.CreateLoginProfileInput:
		m, err := s.one("user", in.UserName)
		if err == nil && m.signsIn {
			return nil, fault("EntityAlreadyExists")
		}
		if err == nil {
			m.signsIn = true
		}
		return &iam.CreateLoginProfileOutput{}, err
	case *iam.DeleteLoginProfileInput:
		m, err := s.one("user", in.UserName)
		if err == nil {
			m.signsIn = false
		}
		return &iam.DeleteLoginProfileOutput{}, err
	case *iam.ListAccessKeysInput:
		m, err := s.one("user", in.UserName)
		if err != nil {
			return nil, err
		}
		var list []types.AccessKeyMetadata
		for _, id := range m.keys {
			list = append(list, types.AccessKeyMetadata{AccessKeyId: &id})
		}
		shown, next := page(list, in.Marker)
		return &iam.ListAccessKeysOutput{AccessKeyMetadata: shown, Marker: next}, nil
	case *iam.DeleteAccessKeyInput:
		m, err := s.one("user", in.UserName)
		if err == nil {
			m.keys, err = removed(m.keys, *in.AccessKeyId)
		}
		return &iam.DeleteAccessKeyOutput{}, err
	case *iam.ListMFADevicesInput:
		m, err := s.one("user", in.UserName)
		if err != nil {
			return nil, err
		}
		var list []types.MFADevice
		for _, serial := range m.devices {
			list = append(list, types.MFADevice{SerialNumber: &serial})
		}
		shown, next := page(list, in.Marker)
		return &iam.ListMFADevicesOutput{MFADevices: shown, Marker: next}, nil
	case *iam.DeactivateMFADeviceInput:
		m, err := s.one("user", in.UserName)
		if err == nil {
			m.devices, err = removed(m.devices, *in.SerialNumber)
		}
		return &iam.DeactivateMFADeviceOutput{}, err
	}
	return nil, nil
}

// list answers with the users and groups of a page. Their policies are encoded for URLs.
func (s *iamMembers) list(in *iam.GetAccountAuthorizationDetailsInput) (any, error) {
	var shown []string
	for _, key := range sortedKeys(s.all) {
		if m := s.all[key]; m.unseen.reads == 0 && m.unlisted.over() {
			shown = append(shown, key)
		}
	}
	keys, next := page(shown, in.Marker)
	out := &iam.GetAccountAuthorizationDetailsOutput{Marker: next}
	for _, key := range keys {
		m := s.all[key]
		var inline []types.PolicyDetail
		for _, name := range sortedKeys(m.inline) {
			inline = append(inline,
				types.PolicyDetail{PolicyName: &name, PolicyDocument: sdk.String(url.QueryEscape(m.inline[name]))})
		}
		var attached []types.AttachedPolicy
		for _, arn := range m.attached {
			attached = append(attached, types.AttachedPolicy{PolicyArn: &arn})
		}
		if strings.HasPrefix(key, "user ") {
			out.UserDetailList = append(out.UserDetailList, types.UserDetail{UserName: &m.name, Path: &m.path,
				UserPolicyList: inline, AttachedManagedPolicies: attached, GroupList: m.groups})
			continue
		}
		out.GroupDetailList = append(out.GroupDetailList, types.GroupDetail{GroupName: &m.name, Path: &m.path,
			GroupPolicyList: inline, AttachedManagedPolicies: attached})
	}
	return out, nil
}

// iamAccount imitates the managed policies of the account, which some lists do not show yet, its server certificates,
// its SAML providers, and its requirements for passwords.
type iamAccount struct {
	policies     map[string]*iamPolicy // by name
	certificates map[string]string
	providers    map[string]string // documents by ARN
	passwords    *types.PasswordPolicy
	lag          int
}

type iamPolicy struct {
	versions []types.PolicyVersion
	unlisted lag
	made     int
}

func newIAMAccount(reads int) *iamAccount {
	return &iamAccount{policies: map[string]*iamPolicy{}, certificates: map[string]string{},
		providers: map[string]string{}, lag: reads}
}

// add adds a version to a policy, and makes it the default.
func (p *iamPolicy) add(text *string) {
	for i := range p.versions {
		p.versions[i].IsDefaultVersion = false
	}
	p.made++
	p.versions = append(p.versions, types.PolicyVersion{VersionId: sdk.String(fmt.Sprintf("v%d", p.made)),
		Document: sdk.String(url.QueryEscape(*text)), IsDefaultVersion: true})
}

func (s *iamAccount) policy(arn *string) (*iamPolicy, error) {
	if p := s.policies[strings.TrimPrefix(*arn, policyARNs)]; p != nil {
		return p, nil
	}
	return nil, fault("NoSuchEntity")
}

func (s *iamAccount) answer(in any) (any, error) {
	switch in := in.(type) {
	case *iam.CreatePolicyInput:
		if s.policies[*in.PolicyName] != nil {
			return nil, fault("EntityAlreadyExists")
		}
		s.policies[*in.PolicyName] = &iamPolicy{unlisted: lag{s.lag}}
		s.policies[*in.PolicyName].add(in.PolicyDocument)
		return &iam.CreatePolicyOutput{}, nil
	case *iam.ListPoliciesInput:
		var list []types.Policy
		for _, name := range sortedKeys(s.policies) {
			if p := s.policies[name]; p.unlisted.over() {
				list = append(list, types.Policy{PolicyName: &name, Arn: sdk.String(policyARNs + name),
					DefaultVersionId: p.versions[len(p.versions)-1].VersionId})
			}
		}
		shown, next := page(list, in.Marker)
		return &iam.ListPoliciesOutput{Policies: shown, Marker: next}, nil
	case *iam.GetPolicyVersionInput, *iam.ListPolicyVersionsInput, *iam.CreatePolicyVersionInput,
		*iam.DeletePolicyVersionInput, *iam.DeletePolicyInput:
		return s.answerVersions(in)
	case *iam.GetAccountPasswordPolicyInput:
		if s.passwords == nil {
			return nil, fault("NoSuchEntity")
		}
		return &iam.GetAccountPasswordPolicyOutput{PasswordPolicy: s.passwords}, nil
	case *iam.UpdateAccountPasswordPolicyInput:
		s.passwords = &types.PasswordPolicy{AllowUsersToChangePassword: in.AllowUsersToChangePassword,
			HardExpiry: in.HardExpiry, MaxPasswordAge: in.MaxPasswordAge, MinimumPasswordLength: in.MinimumPasswordLength,
			PasswordReusePrevention:    in.PasswordReusePrevention,
			RequireLowercaseCharacters: in.RequireLowercaseCharacters, RequireNumbers: in.RequireNumbers,
			RequireSymbols: in.RequireSymbols, RequireUppercaseCharacters: in.RequireUppercaseCharacters}
		return &iam.UpdateAccountPasswordPolicyOutput{}, nil
	}
	return s.answerTexts(in)
}

// answerVersions answers requests for the versions of a policy. AWS keeps five.
func (s *iamAccount) answerVersions(in any) (any, error) {
	switch in := in.(type) {
	case *iam.GetPolicyVersionInput:
		p, err := s.policy(in.PolicyArn)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(p.versions, func(v types.PolicyVersion) bool { return *v.VersionId == *in.VersionId })
		return &iam.GetPolicyVersionOutput{PolicyVersion: &p.versions[i]}, nil
	case *iam.ListPolicyVersionsInput:
		p, err := s.policy(in.PolicyArn)
		if err != nil {
			return nil, err
		}
		return &iam.ListPolicyVersionsOutput{Versions: slices.Clone(p.versions)}, nil
	case *iam.CreatePolicyVersionInput:
		p, err := s.policy(in.PolicyArn)
		if err == nil && len(p.versions) == 5 {
			return nil, fault("LimitExceeded")
		}
		if err == nil {
			p.add(in.PolicyDocument)
		}
		return &iam.CreatePolicyVersionOutput{}, err
	case *iam.DeletePolicyVersionInput:
		p, err := s.policy(in.PolicyArn)
		if err == nil {
			p.versions = slices.DeleteFunc(p.versions,
				func(v types.PolicyVersion) bool { return *v.VersionId == *in.VersionId })
		}
		return &iam.DeletePolicyVersionOutput{}, err
	case *iam.DeletePolicyInput:
		p, err := s.policy(in.PolicyArn)
		if err == nil && len(p.versions) > 1 {
			return nil, fault("DeleteConflict")
		}
		delete(s.policies, strings.TrimPrefix(*in.PolicyArn, policyARNs))
		return &iam.DeletePolicyOutput{}, err
	}
	return nil, nil
}

// answerTexts answers requests for server certificates and SAML providers.
func (s *iamAccount) answerTexts(in any) (any, error) {
	switch in := in.(type) {
	case *iam.GetServerCertificateInput:
		text, ok := s.certificates[*in.ServerCertificateName]
		if !ok {
			return nil, fault("NoSuchEntity")
		}
		return &iam.GetServerCertificateOutput{ServerCertificate: &types.ServerCertificate{CertificateBody: &text}}, nil
	case *iam.UploadServerCertificateInput:
		s.certificates[*in.ServerCertificateName] = *in.CertificateBody
		return &iam.UploadServerCertificateOutput{}, nil
	case *iam.DeleteServerCertificateInput:
		delete(s.certificates, *in.ServerCertificateName)
		return &iam.DeleteServerCertificateOutput{}, nil
	case *iam.ListSAMLProvidersInput:
		out := &iam.ListSAMLProvidersOutput{}
		for _, arn := range sortedKeys(s.providers) {
			out.SAMLProviderList = append(out.SAMLProviderList, types.SAMLProviderListEntry{Arn: &arn})
		}
		return out, nil
	case *iam.CreateSAMLProviderInput:
		s.providers["arn:aws:iam::123456789012:saml-provider/"+*in.Name] = *in.SAMLMetadataDocument
		return &iam.CreateSAMLProviderOutput{}, nil
	case *iam.GetSAMLProviderInput:
		return &iam.GetSAMLProviderOutput{SAMLMetadataDocument: sdk.String(s.providers[*in.SAMLProviderArn])}, nil
	case *iam.UpdateSAMLProviderInput:
		s.providers[*in.SAMLProviderArn] = *in.SAMLMetadataDocument
		return &iam.UpdateSAMLProviderOutput{}, nil
	case *iam.DeleteSAMLProviderInput:
		delete(s.providers, *in.SAMLProviderArn)
		return &iam.DeleteSAMLProviderOutput{}, nil
	}
	return nil, nil
}
