package testenv

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Permissions returns what rules grant, each once, as "verb group/resource", sorted.
func Permissions(rules []rbacv1.PolicyRule) []string {
	each := oneByOne(rules)
	permissions := make([]string, len(each))
	for i, rule := range each {
		permissions[i] = permissionOf(rule)
	}
	slices.Sort(permissions)
	return slices.Compact(permissions)
}

// RulesWithout returns rules that grant the same but for one permission, as [Permissions] has it.
func RulesWithout(rules []rbacv1.PolicyRule, permission string) []rbacv1.PolicyRule {
	return slices.DeleteFunc(oneByOne(rules),
		func(rule rbacv1.PolicyRule) bool { return permissionOf(rule) == permission })
}

// oneByOne returns rules that grant the same, each for one verb and resource.
func oneByOne(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var each []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					each = append(each, rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group},
						Resources: []string{resource}, ResourceNames: rule.ResourceNames})
				}
			}
		}
	}
	return each
}

// permissionOf returns a rule for one verb and resource as "verb group/resource".
func permissionOf(rule rbacv1.PolicyRule) string {
	return rule.Verbs[0] + " " + rule.APIGroups[0] + "/" + rule.Resources[0]
}
