package bundle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// Tightened tells what a CustomResourceDefinition takes from users of an earlier one: everything that was there and is
// gone, that was accepted and is refused, or that means something else. There is one sentence for each, with the path
// of the field and what to do; there is none for what is only loosened or added and optional.
//
// The rules are those of OLM v1, which refuses to upgrade across most of this (operator-controller's CRD upgrade
// safety), and our own: limits are only ever loosened, new fields are optional. What cannot be decided without running
// it, such as whether another pattern or CEL rule accepts more, counts as tightened. The schema of the status counts
// too: clients read it.
func Tightened(old, new *apiextensionsv1.CustomResourceDefinition) []string {
	// Fill in what the API server does, so that a definition that was read from it compares with one from a file.
	old, new = old.DeepCopy(), new.DeepCopy()
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{old, new} {
		apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	}
	c := &comparison{where: new.Name}
	c.definition(&old.Spec, &new.Spec)
	for i := range old.Spec.Versions {
		before := &old.Spec.Versions[i]
		c.where = new.Name + "/" + before.Name
		after := version(&new.Spec, before.Name)
		if after == nil {
			c.say("", "the version is gone, and objects may be stored in it: keep it")
			continue
		}
		c.version(before, after)
	}
	c.newVersions(new.Name, &old.Spec, &new.Spec)
	c.where = new.Name
	for _, stored := range old.Status.StoredVersions {
		if version(&new.Spec, stored) == nil && version(&old.Spec, stored) == nil {
			c.say("", "objects are stored in version %s, which is gone: keep it", stored)
		}
	}
	return c.found
}

// comparison collects what is found.
type comparison struct {
	where string // the definition, and the version if one is being compared
	found []string
}

// say notes something about a field, or about the definition or version itself if the path is empty.
func (c *comparison) say(path, format string, args ...any) {
	where := c.where
	if path != "" {
		where += " " + path
	}
	c.found = append(c.found, where+": "+fmt.Sprintf(format, args...))
}

// changed notes a value that has to stay what it was for ever.
func changed[T comparable](c *comparison, path, what string, before, after T) {
	if before != after {
		c.say(path, "%s is %q and was %q: put it back", what, fmt.Sprint(after), fmt.Sprint(before))
	}
}

// missing notes every element that was there and is not any more.
func missing[T cmp.Ordered](c *comparison, path, what string, before, after []T) {
	for _, element := range slices.Sorted(slices.Values(before)) {
		if !slices.Contains(after, element) {
			c.say(path, "%s %v is gone: put it back", what, element)
		}
	}
}

// definition compares what all versions have in common.
func (c *comparison) definition(before, after *apiextensionsv1.CustomResourceDefinitionSpec) {
	changed(c, "", "the scope", before.Scope, after.Scope)
	changed(c, "", "the group", before.Group, after.Group)
	changed(c, "", "the kind", before.Names.Kind, after.Names.Kind)
	changed(c, "", "the plural", before.Names.Plural, after.Names.Plural)
	changed(c, "", "the singular", before.Names.Singular, after.Names.Singular)
	changed(c, "", "the list kind", before.Names.ListKind, after.Names.ListKind)
	missing(c, "", "the short name", before.Names.ShortNames, after.Names.ShortNames)
	missing(c, "", "the category", before.Names.Categories, after.Names.Categories)
	changed(c, "", "the conversion", before.Conversion.Strategy, after.Conversion.Strategy)
	if before.PreserveUnknownFields && !after.PreserveUnknownFields {
		c.say("", "unknown fields were kept and are dropped: set preserveUnknownFields again")
	}
}

// version returns the version of a name, or nil.
func version(spec *apiextensionsv1.CustomResourceDefinitionSpec,
	name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range spec.Versions {
		if spec.Versions[i].Name == name {
			return &spec.Versions[i]
		}
	}
	return nil
}

// newVersions compares versions that are new with the one that objects have been stored in. Without conversion they are
// the same objects, which have to be valid in both.
func (c *comparison) newVersions(name string, before, after *apiextensionsv1.CustomResourceDefinitionSpec) {
	stored := slices.IndexFunc(before.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Storage
	})
	if stored < 0 || after.Conversion.Strategy != apiextensionsv1.NoneConverter {
		return
	}
	for i := range after.Versions {
		added := &after.Versions[i]
		if version(before, added.Name) == nil {
			c.where = fmt.Sprintf("%s/%s, compared with %s,", name, added.Name, before.Versions[stored].Name)
			c.schema("", root(&before.Versions[stored]), root(added))
		}
	}
}

// version compares two states of a version.
func (c *comparison) version(before, after *apiextensionsv1.CustomResourceDefinitionVersion) {
	if before.Served && !after.Served {
		c.say("", "the version is not served any more: serve it")
	}
	c.schema("", root(before), root(after))
	c.subresources(ptr.Deref(before.Subresources, apiextensionsv1.CustomResourceSubresources{}),
		ptr.Deref(after.Subresources, apiextensionsv1.CustomResourceSubresources{}))
	for _, field := range before.SelectableFields {
		if !slices.Contains(after.SelectableFields, field) {
			c.say("", "the selectable field %s is gone: put it back", field.JSONPath)
		}
	}
}

// root returns the schema of a version; without one, anything goes.
func root(version *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	}
	return version.Schema.OpenAPIV3Schema
}

func (c *comparison) subresources(before, after apiextensionsv1.CustomResourceSubresources) {
	switch {
	case before.Status != nil && after.Status == nil:
		c.say("", "the subresource status is gone: put it back")
	case before.Status == nil && after.Status != nil:
		c.say("", "the subresource status is new, so that a write of the whole resource does not write the status any "+
			"more: leave it out")
	}
	was, is := before.Scale, after.Scale
	switch {
	case was == nil:
	case is == nil:
		c.say("", "the subresource scale is gone: put it back")
	default:
		changed(c, "", "scale's specReplicasPath", was.SpecReplicasPath, is.SpecReplicasPath)
		changed(c, "", "scale's statusReplicasPath", was.StatusReplicasPath, is.StatusReplicasPath)
		if was.LabelSelectorPath != nil {
			changed(c, "", "scale's labelSelectorPath", *was.LabelSelectorPath, ptr.Deref(is.LabelSelectorPath, ""))
		}
	}
}

// schema compares a field with what it was, and all that is in it.
func (c *comparison) schema(path string, before, after *apiextensionsv1.JSONSchemaProps) {
	c.shape(path, before, after)
	c.numbers(path, before, after)
	c.lengths(path, before, after)
	c.values(path, before, after)
	c.rules(path, before, after)
	c.combinations(path, before, after)
	c.properties(path, before, after)
	c.elements(path, before, after)
}

// shape compares what sort of thing a field is, and how writes to it are merged.
func (c *comparison) shape(path string, before, after *apiextensionsv1.JSONSchemaProps) {
	if before.XIntOrString && !after.XIntOrString {
		c.say(path, "it was an integer or a string and is of type %q: put x-kubernetes-int-or-string back", after.Type)
	} else {
		changed(c, path, "the type", before.Type, after.Type)
	}
	if before.Nullable && !after.Nullable {
		c.say(path, "it could be null and cannot any more: put nullable back")
	}
	if ptr.Deref(before.XPreserveUnknownFields, false) && !ptr.Deref(after.XPreserveUnknownFields, false) {
		c.say(path, "unknown fields were kept and are dropped: put x-kubernetes-preserve-unknown-fields back")
	}
	changed(c, path, "x-kubernetes-embedded-resource", before.XEmbeddedResource, after.XEmbeddedResource)
	changed(c, path, "the list type", ptr.Deref(before.XListType, "atomic"), ptr.Deref(after.XListType, "atomic"))
	changed(c, path, "the list of map keys", strings.Join(before.XListMapKeys, ","), strings.Join(after.XListMapKeys, ","))
	changed(c, path, "the map type", ptr.Deref(before.XMapType, "granular"), ptr.Deref(after.XMapType, "granular"))
}

func (c *comparison) numbers(path string, before, after *apiextensionsv1.JSONSchemaProps) {
	limit(c, path, "maximum", before.Maximum, after.Maximum, -1)
	limit(c, path, "minimum", before.Minimum, after.Minimum, 1)
	if after.ExclusiveMaximum && !before.ExclusiveMaximum && equality.Semantic.DeepEqual(before.Maximum, after.Maximum) {
		c.say(path, "the maximum itself is not allowed any more: take exclusiveMaximum away")
	}
	if after.ExclusiveMinimum && !before.ExclusiveMinimum && equality.Semantic.DeepEqual(before.Minimum, after.Minimum) {
		c.say(path, "the minimum itself is not allowed any more: take exclusiveMinimum away")
	}
	if after.MultipleOf != nil && !ptr.Equal(before.MultipleOf, after.MultipleOf) {
		c.say(path, "it has to be a multiple of %v, which is new: take multipleOf away", *after.MultipleOf)
	}
}

func (c *comparison) lengths(path string, before, after *apiextensionsv1.JSONSchemaProps) {
	for _, l := range []struct {
		name          string
		before, after *int64
		tighter       int
	}{
		{"maxLength", before.MaxLength, after.MaxLength, -1},
		{"maxItems", before.MaxItems, after.MaxItems, -1},
		{"maxProperties", before.MaxProperties, after.MaxProperties, -1},
		{"minLength", cmp.Or(before.MinLength, ptr.To[int64](0)), after.MinLength, 1},
		{"minItems", cmp.Or(before.MinItems, ptr.To[int64](0)), after.MinItems, 1},
		{"minProperties", cmp.Or(before.MinProperties, ptr.To[int64](0)), after.MinProperties, 1},
	} {
		limit(c, path, l.name, l.before, l.after, l.tighter)
	}
	if after.UniqueItems && !before.UniqueItems {
		c.say(path, "its items have to be different, which is new: take uniqueItems away")
	}
}

// limit notes a limit that is new or has moved inward: up if tighter is 1, down if it is -1.
func limit[N int64 | float64](c *comparison, path, name string, before, after *N, tighter int) {
	const advice = "limits are only ever loosened"
	switch {
	case after == nil:
	case before == nil:
		c.say(path, "%s %s is new, and %s: take it away", name, decimal(*after), advice)
	case cmp.Compare(*after, *before) == tighter:
		c.say(path, "%s is %s and was %s, and %s: put it back", name, decimal(*after), decimal(*before), advice)
	}
}

func decimal[N int64 | float64](n N) string {
	return strconv.FormatFloat(float64(n), 'f', -1, 64)
}

// values compares which single values are allowed, and which one there is if nobody names any.
func (c *comparison) values(path string, before, after *apiextensionsv1.JSONSchemaProps) {
	if after.Pattern != "" && after.Pattern != before.Pattern {
		c.say(path, "pattern %q is new or has changed from %q: put it as it was, or take it away", after.Pattern,
			before.Pattern)
	}
	if after.Format != "" && after.Format != before.Format {
		c.say(path, "format %q is new or has changed from %q: put it as it was, or take it away", after.Format, before.Format)
	}
	if len(before.Enum) == 0 && len(after.Enum) > 0 {
		c.say(path, "only listed values are allowed, which is new: take enum away")
	}
	if len(after.Enum) > 0 {
		missing(c, path, "the allowed value", texts(before.Enum), texts(after.Enum))
	}
	switch was, is := text(before.Default), text(after.Default); {
	case was == is:
	case was == "":
		c.say(path, "default %s is new, and changes what leaving it out means: take it away", is)
	case is == "":
		c.say(path, "default %s is gone, and that changes what leaving it out means: put it back", was)
	default:
		c.say(path, "the default is %s and was %s, and that changes what leaving it out means: put it back", is, was)
	}
}

// text returns a value as JSON, always the same for the same value; none is empty.
func text(value *apiextensionsv1.JSON) string {
	if value == nil {
		return ""
	}
	canonical, err := yaml.YAMLToJSON(value.Raw)
	if err != nil {
		return string(value.Raw)
	}
	return string(canonical)
}

func texts(values []apiextensionsv1.JSON) []string {
	all := make([]string, 0, len(values))
	for i := range values {
		all = append(all, text(&values[i]))
	}
	return all
}

// rules notes CEL rules that are new or have changed. Fewer rules, or other messages, refuse no more than before.
func (c *comparison) rules(path string, before, after *apiextensionsv1.JSONSchemaProps) {
	for _, rule := range after.XValidations {
		if !slices.ContainsFunc(before.XValidations, func(known apiextensionsv1.ValidationRule) bool {
			return known.Rule == rule.Rule && ptr.Deref(known.OptionalOldSelf, false) == ptr.Deref(rule.OptionalOldSelf, false)
		}) {
			c.say(path, "the rule %q is new or has changed: put it as it was, or take it away", rule.Rule)
		}
	}
}

// combinations compares schemas that are combined with the field's own.
func (c *comparison) combinations(path string, before, after *apiextensionsv1.JSONSchemaProps) {
	for _, schema := range after.AllOf { // each of them restricts
		if !among(before.AllOf, schema) {
			c.say(path, "a schema in allOf is new or has changed: put it as it was, or take it away")
		}
	}
	if len(after.AnyOf) > 0 {
		if len(before.AnyOf) == 0 {
			c.say(path, "anyOf is new: take it away")
		}
		for _, schema := range before.AnyOf { // each of them permits
			if !among(after.AnyOf, schema) {
				c.say(path, "a schema in anyOf is gone or has changed: put it back")
			}
		}
	}
	if len(after.OneOf) > 0 && !equality.Semantic.DeepEqual(before.OneOf, after.OneOf) {
		c.say(path, "oneOf is new or has changed: put it as it was, or take it away")
	}
	if after.Not != nil && !equality.Semantic.DeepEqual(before.Not, after.Not) {
		c.say(path, "not is new or has changed: put it as it was, or take it away")
	}
}

func among(schemas []apiextensionsv1.JSONSchemaProps, schema apiextensionsv1.JSONSchemaProps) bool {
	return slices.ContainsFunc(schemas, func(s apiextensionsv1.JSONSchemaProps) bool {
		return equality.Semantic.DeepEqual(s, schema)
	})
}

// properties compares the fields of an object by name.
func (c *comparison) properties(path string, before, after *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(slices.Values(after.Required)) {
		if !slices.Contains(before.Required, name) {
			c.say(join(path, name), "it is required, which is new: make it optional")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		was := before.Properties[name]
		is, stays := after.Properties[name]
		if !stays {
			c.say(join(path, name), "the field is gone, and fields are never removed or renamed: put it back")
			continue
		}
		c.schema(join(path, name), &was, &is)
	}
	anything := ptr.Deref(before.XPreserveUnknownFields, false) || before.AdditionalProperties != nil
	for _, name := range slices.Sorted(maps.Keys(after.Properties)) {
		if _, known := before.Properties[name]; !known && anything {
			c.say(join(path, name),
				"the field is new where any name was allowed, and may refuse what is stored under it: choose another place")
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// elements compares what lists and maps hold.
func (c *comparison) elements(path string, before, after *apiextensionsv1.JSONSchemaProps) {
	switch was, is := item(before.Items), item(after.Items); {
	case was != nil && is != nil:
		c.schema(path+"[]", was, is)
	case is != nil:
		c.say(path+"[]", "its items have a schema, which is new: take it away")
	case was != nil:
		c.say(path+"[]", "the schema of its items is gone: put it back")
	}
	was, is := before.AdditionalProperties, after.AdditionalProperties
	switch {
	case was == nil || !was.Allows && was.Schema == nil: // no other fields were allowed
	case is == nil || !is.Allows && is.Schema == nil:
		c.say(path, "it could have fields of any name and cannot any more: put additionalProperties back")
	case was.Schema != nil && is.Schema != nil:
		c.schema(path+"{}", was.Schema, is.Schema)
	case is.Schema != nil:
		c.say(path+"{}", "its fields have a schema, which is new: take it away")
	}
}

// item returns the schema of the items of a list; the API server takes no list of schemas.
func item(items *apiextensionsv1.JSONSchemaPropsOrArray) *apiextensionsv1.JSONSchemaProps {
	if items == nil {
		return nil
	}
	return items.Schema
}
