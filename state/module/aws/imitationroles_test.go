package aws_test

import (
	"net/url"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// iamRoles imitates roles, instance profiles and managed policies of IAM.
type iamRoles struct {
	all      map[string]*iamRole
	profiles map[string]*iamProfile
	managed  []string // names of policies
	lag      int
}

type iamRole struct {
	types.RoleDetail
	inline   map[string]string
	attached []string // ARNs
	unseen   lag      // requests that do not find the role yet
	unlisted lag      // lists that do not show the role yet
}

type iamProfile struct {
	role   string // "" for none
	path   *string
	unseen lag
}

const policyARNs = "arn:aws:iam::123456789012:policy/"

func newIAMRoles(reads int) *iamRoles {
	return &iamRoles{all: map[string]*iamRole{}, profiles: map[string]*iamProfile{},
		managed: []string{"a", "b", "own", "c"}, lag: reads}
}

// role finds a role for a request.
func (s *iamRoles) role(name *string) (*iamRole, error) {
	if r := s.all[*name]; r != nil && r.unseen.over() {
		return r, nil
	}
	return nil, fault("NoSuchEntity")
}

func (s *iamRoles) answer(in any) (any, error) {
	switch in := in.(type) {
	case *iam.GetAccountAuthorizationDetailsInput:
		return s.list(in)
	case *iam.CreateRoleInput:
		if s.all[*in.RoleName] != nil {
			return nil, fault("EntityAlreadyExists")
		}
		s.all[*in.RoleName] = &iamRole{RoleDetail: types.RoleDetail{RoleName: in.RoleName, Path: in.Path,
			AssumeRolePolicyDocument: in.AssumeRolePolicyDocument}, inline: map[string]string{}, unseen: lag{s.lag}}
		return &iam.CreateRoleOutput{}, nil
	case *iam.GetRoleInput:
		_, err := s.role(in.RoleName)
		return &iam.GetRoleOutput{Role: &types.Role{RoleName: in.RoleName}}, err
	case *iam.UpdateAssumeRolePolicyInput:
		r, err := s.role(in.RoleName)
		if err == nil {
			r.AssumeRolePolicyDocument = in.PolicyDocument
		}
		return &iam.UpdateAssumeRolePolicyOutput{}, err
	case *iam.DeleteRoleInput:
		r, err := s.role(in.RoleName)
		if err == nil && len(r.inline)+len(r.attached)+len(s.profilesOf(*in.RoleName)) > 0 {
			return nil, fault("DeleteConflict")
		}
		delete(s.all, *in.RoleName)
		return &iam.DeleteRoleOutput{}, err
	}
	if out, err := s.answerPolicies(in); out != nil || err != nil {
		return out, err
	}
	return s.answerProfiles(in)
}

func (s *iamRoles) answerPolicies(in any) (any, error) {
	switch in := in.(type) {
	case *iam.PutRolePolicyInput:
		r, err := s.role(in.RoleName)
		if err == nil {
			r.inline[*in.PolicyName] = *in.PolicyDocument
		}
		return &iam.PutRolePolicyOutput{}, err
	case *iam.DeleteRolePolicyInput:
		r, err := s.role(in.RoleName)
		if err != nil || r.inline[*in.PolicyName] == "" {
			return nil, fault("NoSuchEntity")
		}
		delete(r.inline, *in.PolicyName)
		return &iam.DeleteRolePolicyOutput{}, nil
	case *iam.ListPoliciesInput:
		var list []types.Policy
		for _, name := range s.managed {
			list = append(list, types.Policy{PolicyName: &name, Arn: sdk.String(policyARNs + name)})
		}
		shown, next := page(list, in.Marker)
		return &iam.ListPoliciesOutput{Policies: shown, Marker: next}, nil
	case *iam.AttachRolePolicyInput:
		r, err := s.role(in.RoleName)
		if err == nil && !slices.Contains(r.attached, *in.PolicyArn) {
			r.attached = append(r.attached, *in.PolicyArn)
		}
		return &iam.AttachRolePolicyOutput{}, err
	case *iam.DetachRolePolicyInput:
		r, err := s.role(in.RoleName)
		if err != nil || !slices.Contains(r.attached, *in.PolicyArn) {
			return nil, fault("NoSuchEntity")
		}
		r.attached = slices.DeleteFunc(r.attached, func(arn string) bool { return arn == *in.PolicyArn })
		return &iam.DetachRolePolicyOutput{}, nil
	}
	return nil, nil
}

func (s *iamRoles) answerProfiles(in any) (any, error) {
	switch in := in.(type) {
	case *iam.CreateInstanceProfileInput:
		if s.profiles[*in.InstanceProfileName] != nil {
			return nil, fault("EntityAlreadyExists")
		}
		s.profiles[*in.InstanceProfileName] = &iamProfile{path: in.Path, unseen: lag{s.lag}}
		return &iam.CreateInstanceProfileOutput{}, nil
	case *iam.GetInstanceProfileInput:
		p := s.profiles[*in.InstanceProfileName]
		if p == nil {
			return nil, fault("NoSuchEntity")
		}
		return &iam.GetInstanceProfileOutput{InstanceProfile: &types.InstanceProfile{
			InstanceProfileName: in.InstanceProfileName,
			Roles:               []types.Role{{RoleName: &p.role}}}}, nil
	case *iam.AddRoleToInstanceProfileInput:
		p := s.profiles[*in.InstanceProfileName]
		switch {
		case p == nil || !p.unseen.over():
			return nil, fault("NoSuchEntity")
		case p.role != "":
			return nil, fault("LimitExceeded")
		}
		p.role = *in.RoleName
		return &iam.AddRoleToInstanceProfileOutput{}, nil
	case *iam.RemoveRoleFromInstanceProfileInput:
		p := s.profiles[*in.InstanceProfileName]
		if p == nil || p.role != *in.RoleName {
			return nil, fault("NoSuchEntity")
		}
		p.role = ""
		return &iam.RemoveRoleFromInstanceProfileOutput{}, nil
	case *iam.DeleteInstanceProfileInput:
		if p := s.profiles[*in.InstanceProfileName]; p == nil || p.role != "" {
			return nil, fault("DeleteConflict")
		}
		delete(s.profiles, *in.InstanceProfileName)
		return &iam.DeleteInstanceProfileOutput{}, nil
	}
	return nil, nil
}

func (s *iamRoles) profilesOf(role string) (all []types.InstanceProfile) {
	for _, name := range sortedKeys(s.profiles) {
		if s.profiles[name].role == role {
			all = append(all, types.InstanceProfile{InstanceProfileName: &name})
		}
	}
	return all
}

// list answers with all roles. Their policies are encoded for URLs.
func (s *iamRoles) list(in *iam.GetAccountAuthorizationDetailsInput) (any, error) {
	var list []types.RoleDetail
	for _, r := range sortedBy(s.all) {
		if r.unseen.reads > 0 || !r.unlisted.over() {
			continue
		}
		d := r.RoleDetail
		d.AssumeRolePolicyDocument = sdk.String(url.QueryEscape(*d.AssumeRolePolicyDocument))
		d.RolePolicyList, d.AttachedManagedPolicies = nil, nil
		for _, name := range sortedKeys(r.inline) {
			d.RolePolicyList = append(d.RolePolicyList,
				types.PolicyDetail{PolicyName: &name, PolicyDocument: sdk.String(url.QueryEscape(r.inline[name]))})
		}
		for _, arn := range r.attached {
			d.AttachedManagedPolicies = append(d.AttachedManagedPolicies, types.AttachedPolicy{PolicyArn: &arn})
		}
		d.InstanceProfileList = s.profilesOf(*r.RoleName)
		list = append(list, d)
	}
	shown, next := page(list, in.Marker)
	return &iam.GetAccountAuthorizationDetailsOutput{RoleDetailList: shown, Marker: next}, nil
}
