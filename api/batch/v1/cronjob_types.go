package v1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CronJobSpec is what the user wants.
type CronJobSpec struct {
	// schedule says when a Job is due, in the time of spec.timeZone.
	//
	// Required, at most 256 characters, in one of three forms. Five fields with spaces between them: minute (0-59), hour
	// (0-23), day of the month (1-31), month (1-12 or jan-dec) and day of the week (0-6 or sun-sat, 0 is Sunday); each
	// is * for all, a number or name, a range 8-17, a step */15 or 8-17/3, or a list of these with commas. If both the
	// day of the month and the day of the week are restricted, a day that is one of either counts. A name: @hourly,
	// @daily or @midnight, @weekly (Sunday 00:00), @monthly, @yearly or @annually. Or @every and a duration of whole
	// hours, minutes and seconds, such as "@every 1h30m", from one second on; it counts from status.scheduledSince and
	// knows no time of day. When the clocks change and the schedule names hours, a time that they skip runs at the end
	// of the gap, and a time that they show twice runs the first time. If the hour is *, a Job runs once per elapsed
	// hour: a time that is skipped does not run, and a time that is shown twice runs twice. What has this form and never
	// comes, or ends before it begins, is told in the condition Degraded. Changing it lets the new schedule count from
	// then on; Jobs that have been started go on.
	//
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^\s*(?i:CRON_)?(?i:TZ)=')`,message=`must not name a time zone: put it into spec.timeZone, such as Europe/Berlin, and leave out TZ= or CRON_TZ= here`
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[ \t]*[^\s=@]+([ \t]+[^\s=@]+){4}[ \t]*$') || self.matches(r'^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$|^@every ([0-9]{1,6}h([0-9]{1,7}m)?([0-9]{1,9}s)?|[0-9]{1,7}m([0-9]{1,9}s)?|[0-9]{1,9}s)$') || self.matches(r'^\s*(?i:CRON_)?(?i:TZ)=')`,message=`must be five fields on one line with spaces between them, "minute hour day-of-month month day-of-week", such as "30 2 * * mon-fri"; or @yearly, @annually, @monthly, @weekly, @daily, @midnight or @hourly; or "@every" and hours, minutes and seconds in whole numbers, such as "@every 1h30m"`
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^@every (0+[hms])+$')`,message=`must leave at least one second between Jobs, such as "@every 1s"`
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^[ \t]*[^\s=@]+([ \t]+[^\s=@]+){4}[ \t]*$') || self.matches(r'^[ \t]*(([0-5]?[0-9])(-([0-5]?[0-9]))?|[*?])(/0?[1-9][0-9]{0,3})?(,(([0-5]?[0-9])(-([0-5]?[0-9]))?|[*?])(/0?[1-9][0-9]{0,3})?)*[ \t]')`,message=`the first field, the minute, must be * or 0 to 59; a range such as 0-29, a list such as 0,30, or a step such as */15`
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^[ \t]*[^\s=@]+([ \t]+[^\s=@]+){4}[ \t]*$') || self.matches(r'^[ \t]*([^\s]+[ \t]+){1}(([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?|[*?])(/0?[1-9][0-9]{0,3})?(,(([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?|[*?])(/0?[1-9][0-9]{0,3})?)*[ \t]')`,message=`the second field, the hour, must be * or 0 to 23; a range such as 8-17, a list such as 6,18, or a step such as */2`
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^[ \t]*[^\s=@]+([ \t]+[^\s=@]+){4}[ \t]*$') || self.matches(r'^[ \t]*([^\s]+[ \t]+){2}((0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?|[*?])(/0?[1-9][0-9]{0,3})?(,((0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?|[*?])(/0?[1-9][0-9]{0,3})?)*[ \t]')`,message=`the third field, the day of the month, must be * or 1 to 31; a range such as 1-7, a list such as 1,15, or a step such as */10`
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^[ \t]*[^\s=@]+([ \t]+[^\s=@]+){4}[ \t]*$') || self.matches(r'^[ \t]*([^\s]+[ \t]+){3}((0?[1-9]|1[0-2]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))(-(0?[1-9]|1[0-2]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)))?|[*?])(/0?[1-9][0-9]{0,3})?(,((0?[1-9]|1[0-2]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))(-(0?[1-9]|1[0-2]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)))?|[*?])(/0?[1-9][0-9]{0,3})?)*[ \t]')`,message=`the fourth field, the month, must be * or 1 to 12 or jan to dec; a range such as apr-sep, a list such as jan,jul, or a step such as */3`
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^[ \t]*[^\s=@]+([ \t]+[^\s=@]+){4}[ \t]*$') || self.matches(r'^[ \t]*([^\s]+[ \t]+){4}((0?[0-6]|(?i:sun|mon|tue|wed|thu|fri|sat))(-(0?[0-6]|(?i:sun|mon|tue|wed|thu|fri|sat)))?|[*?])(/0?[1-9][0-9]{0,3})?(,((0?[0-6]|(?i:sun|mon|tue|wed|thu|fri|sat))(-(0?[0-6]|(?i:sun|mon|tue|wed|thu|fri|sat)))?|[*?])(/0?[1-9][0-9]{0,3})?)*[ \t]*$')`,message=`the fifth field, the day of the week, must be * or 0 to 6 or sun to sat (Sunday is 0); a range such as mon-fri, a list such as sat,sun, or a step such as */2`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Schedule",order=1,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Schedule string `json:"schedule"`

	// timeZone is the name of the time zone of the schedule, as the IANA time zone database has it: Europe/Berlin.
	//
	// Optional, at most 64 characters; without it the schedule is in UTC. Local is no zone, as it would be another one on
	// every machine. A name that no zone has is told in the condition Degraded, with the reason UnknownTimeZone.
	// Changing it lets the schedule count in the new zone from then on; Jobs that have been started go on.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$')`,message=`must be the name of a zone in the IANA time zone database, such as Europe/Berlin or Etc/UTC, without spaces`
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^(?i:local|localtime)$')`,message=`must name a zone that is the same on every machine, such as Europe/Berlin or Etc/UTC`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Time zone",order=2,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	TimeZone *string `json:"timeZone,omitempty"`

	// startingDeadlineSeconds is how long after it was due a Job may still be started, in seconds: after an outage of the
	// operator or a refusal, or when the concurrencyPolicy Forbid has kept it waiting.
	//
	// Optional, 0 to 3155760000 (100 years); without it a Job may be late by any time. Of all that are due, only the
	// latest is started. Those that are given up are told in an event, with the reason MissedSchedule. With a few seconds
	// or less, a busy cluster is enough to miss one. Changing it decides anew what may still be started; what has been
	// given up stays so, and Jobs that have been started go on.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3155760000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Starting deadline in seconds",order=5,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// concurrencyPolicy says what becomes of a Job that is due while an earlier one of the same CronJob is still running.
	//
	// Optional, one of these; Allow without it. Allow: both run. Forbid: it waits until the earlier one has finished, and
	// is given up when the next is due or its startingDeadlineSeconds are over. Replace: the earlier one is deleted with
	// its pods, and then this one is started. Changing it counts for what is due next; Jobs that are running side by side
	// go on.
	//
	// +optional
	// +kubebuilder:default=Allow
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Concurrency policy",order=4,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Allow","urn:alm:descriptor:com.tectonic.ui:select:Forbid","urn:alm:descriptor:com.tectonic.ui:select:Replace"}
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// suspend keeps Jobs from being started.
	//
	// Optional; false without it. What would have been due meanwhile is not made up for. Changing it to true lets Jobs go
	// on that have been started; changing it to false lets the schedule count from then on.
	//
	// +optional
	// +kubebuilder:default=false
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Suspend",order=6,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Suspend *bool `json:"suspend,omitempty"`

	// jobTemplate is what every Job is made from: its metadata.labels, its metadata.annotations and its spec, which
	// "kubectl explain job.spec" describes.
	//
	// Required. It has the fields that Kubernetes had when the operator was released; an older cluster leaves out those it
	// does not know. restartPolicy must be OnFailure or Never. Jobs get a name, a namespace and a selector of their own,
	// so none may be set. What the cluster refuses beyond that, such as by a quota or by Pod Security, is told in the
	// condition Degraded. Changing it counts for the next Job; those that have been started stay as they are.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule=`!has(self.metadata) || !has(self.metadata.name)`,message=`must be left out: Jobs are named after the CronJob and their time`,fieldPath=".metadata.name"
	// +kubebuilder:validation:XValidation:rule=`!has(self.metadata) || !has(self.metadata.__namespace__)`,message=`must be left out: Jobs are in the namespace of the CronJob`,fieldPath=".metadata.namespace"
	// +kubebuilder:validation:XValidation:rule=`!has(self.metadata) || !has(self.metadata.finalizers)`,message=`must be left out: Jobs get labels and annotations from here and nothing else`,fieldPath=".metadata.finalizers"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?template.?spec.hasValue()`,message=`needs spec.template.spec with containers and a restartPolicy: it says what the pods of a Job are`
	// +kubebuilder:validation:XValidation:rule=`!self.?spec.?template.?spec.hasValue() || self.?spec.?template.?spec.?containers.orValue([]).size() > 0`,message=`needs at least one container`,fieldPath=".spec.template.spec.containers"
	// +kubebuilder:validation:XValidation:rule=`!has(self.spec) || !has(self.spec.template.spec) || self.spec.template.spec.containers.all(c, has(c.image) && c.image != '')`,message=`every container needs an image`,fieldPath=".spec.template.spec.containers"
	// +kubebuilder:validation:XValidation:rule=`!has(self.spec) || !has(self.spec.template.spec) || !has(self.spec.template.spec.initContainers) || self.spec.template.spec.initContainers.all(c, has(c.image) && c.image != '')`,message=`every container needs an image`,fieldPath=".spec.template.spec.initContainers"
	// +kubebuilder:validation:XValidation:rule=`!self.?spec.?template.?spec.hasValue() || self.?spec.?template.?spec.?restartPolicy.orValue('') in ['OnFailure', 'Never']`,message=`must be OnFailure or Never: the pods of a Job come to an end`,fieldPath=".spec.template.spec.restartPolicy"
	// +kubebuilder:validation:XValidation:rule=`!self.?spec.?podFailurePolicy.hasValue() || !(self.?spec.?template.?spec.?restartPolicy.orValue('') in ['OnFailure'])`,message=`must be Never where there is a podFailurePolicy`,fieldPath=".spec.template.spec.restartPolicy"
	// +kubebuilder:validation:XValidation:rule=`!self.?spec.?selector.hasValue()`,message=`must be left out: Kubernetes makes one for every Job`,fieldPath=".spec.selector"
	// +kubebuilder:validation:XValidation:rule=`!self.?spec.?manualSelector.orValue(false)`,message=`must be left out: Kubernetes makes a selector for every Job`,fieldPath=".spec.manualSelector"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?parallelism.orValue(0) >= 0`,message=`must be 0 or more`,fieldPath=".spec.parallelism"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?completions.orValue(0) >= 0`,message=`must be 0 or more`,fieldPath=".spec.completions"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?backoffLimit.orValue(0) >= 0`,message=`must be 0 or more`,fieldPath=".spec.backoffLimit"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?activeDeadlineSeconds.orValue(0) >= 0`,message=`must be 0 or more`,fieldPath=".spec.activeDeadlineSeconds"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?ttlSecondsAfterFinished.orValue(0) >= 0`,message=`must be 0 or more`,fieldPath=".spec.ttlSecondsAfterFinished"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?backoffLimitPerIndex.orValue(0) >= 0`,message=`must be 0 or more`,fieldPath=".spec.backoffLimitPerIndex"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?maxFailedIndexes.orValue(0) >= 0`,message=`must be 0 or more`,fieldPath=".spec.maxFailedIndexes"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?completionMode.orValue('Indexed') in ['Indexed', 'NonIndexed']`,message=`must be Indexed or NonIndexed`,fieldPath=".spec.completionMode"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?completionMode.orValue('') != 'Indexed' || self.?spec.?completions.hasValue()`,message=`must be set where completionMode is Indexed`,fieldPath=".spec.completions"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?completionMode.orValue('') == 'Indexed' || !self.?spec.?backoffLimitPerIndex.hasValue()`,message=`needs the completionMode Indexed`,fieldPath=".spec.backoffLimitPerIndex"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?backoffLimitPerIndex.hasValue() || !self.?spec.?maxFailedIndexes.hasValue()`,message=`needs a backoffLimitPerIndex`,fieldPath=".spec.maxFailedIndexes"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?completionMode.orValue('') == 'Indexed' || !self.?spec.?successPolicy.hasValue()`,message=`needs the completionMode Indexed`,fieldPath=".spec.successPolicy"
	// +kubebuilder:validation:XValidation:rule=`self.?spec.?podReplacementPolicy.orValue('Failed') in (self.?spec.?podFailurePolicy.hasValue() ? ['Failed'] : ['Failed', 'TerminatingOrFailed'])`,message=`must be Failed or TerminatingOrFailed, and Failed where there is a podFailurePolicy`,fieldPath=".spec.podReplacementPolicy"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Job template",order=3,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:jobTemplate"}
	JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`

	// successfulJobsHistoryLimit is how many Jobs that have completed are kept, the latest ones, to look at what they
	// logged.
	//
	// Optional, 0 or more; 3 without it.
	// Changing it to less deletes the oldest ones with their pods; changing it to more brings none back.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Completed Jobs to keep",order=7,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// failedJobsHistoryLimit is how many Jobs that have failed are kept, the latest ones, to look at what they logged.
	//
	// Optional, 0 or more; 1 without it.
	// Changing it to less deletes the oldest ones with their pods; changing it to more brings none back.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Failed Jobs to keep",order=8,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// ConcurrencyPolicy says what becomes of a Job that is due while an earlier one is still running.
//
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

const (
	// AllowConcurrent starts the Job beside the earlier one.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent has the Job wait for the earlier one.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the earlier one and starts the Job.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CronJobStatus is what the operator has seen.
type CronJobStatus struct {
	// observedGeneration is the metadata.generation that this status speaks of. If it is lower than
	// metadata.generation, the latest change of the spec has not been answered yet.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation",order=11,xDescriptors={"urn:alm:descriptor:text"}
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// active are references to the Jobs that have not finished, sorted by name. If there are more than 100, these are
	// the latest 100.
	//
	// +optional
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Active Jobs",order=7,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Active []corev1.ObjectReference `json:"active,omitempty"`

	// activeJobs is the number of all Jobs that have not finished.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Number of active Jobs",order=5,xDescriptors={"urn:alm:descriptor:text"}
	ActiveJobs int32 `json:"activeJobs"`

	// lastScheduleTime is the latest time that was due and for which a Job was started. It only moves forward.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last scheduled",order=2,xDescriptors={"urn:alm:descriptor:text"}
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// lastSuccessfulTime is when a Job last completed.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last successful",order=3,xDescriptors={"urn:alm:descriptor:text"}
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`

	// lastFailedTime is when a Job last failed. If it is later than lastSuccessfulTime, the condition Degraded tells of
	// it, with the reason LastRunFailed.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last failed",order=4,xDescriptors={"urn:alm:descriptor:text"}
	LastFailedTime *metav1.Time `json:"lastFailedTime,omitempty"`

	// nextScheduleTime is when a Job is due next. There is none while the CronJob is suspended, or if none will ever be
	// due.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Next scheduled",order=1,xDescriptors={"urn:alm:descriptor:text"}
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// lastMissedTime is the latest time that was due and for which no Job was started, nor will be.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last missed",order=6,xDescriptors={"urn:alm:descriptor:text"}
	LastMissedTime *metav1.Time `json:"lastMissedTime,omitempty"`

	// scheduledSince is the time after which the schedule counts: when the CronJob was created, its schedule or timeZone
	// last changed, or it was last resumed. There is none while it is suspended.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Scheduled since",order=8,xDescriptors={"urn:alm:descriptor:text"}
	ScheduledSince *metav1.Time `json:"scheduledSince,omitempty"`

	// observedSchedule is the schedule that scheduledSince speaks of.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed schedule",order=9,xDescriptors={"urn:alm:descriptor:text"}
	ObservedSchedule string `json:"observedSchedule,omitempty"`

	// observedTimeZone is the timeZone that scheduledSince speaks of; none if the spec has none.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed time zone",order=10,xDescriptors={"urn:alm:descriptor:text"}
	ObservedTimeZone string `json:"observedTimeZone,omitempty"`

	// conditions say how the CronJob is: Available (will the next Job be started when it is due), Progressing (are Jobs
	// running, or due and waiting) and Degraded (does somebody have to act). All three are always present.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",order=12,xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CronJob starts a Job whenever one is due, in a time zone of its own if it has one.
// It is the example of the Kubebuilder book, for trying things out and for what the CronJobs of Kubernetes do not tell.
//
// +kubebuilder:object:root=true
// +operator-sdk:csv:customresourcedefinitions:displayName="CronJob",order=3,resources={{Job,v1,""},{Pod,v1,""},{Event,v1,""},{CronJob,v1,""}}
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=cronjobs,singular=cronjob,categories={all,memcached-operator}
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="the name must have at most 52 characters: Jobs are named after it and their time, in at most 63",fieldPath=".metadata"
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=".spec.schedule",description="When Jobs are due"
// +kubebuilder:printcolumn:name="TimeZone",type=string,JSONPath=".spec.timeZone",description="The time zone of the schedule; UTC when it is empty"
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=".spec.suspend",description="Whether Jobs are kept from being started"
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=".status.activeJobs",description="Jobs that have not finished"
// +kubebuilder:printcolumn:name="Last Schedule",type=date,JSONPath=".status.lastScheduleTime",description="When a Job was last due and started"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type CronJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name may have up to 52 characters.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the user wants.
	//
	// +required
	Spec CronJobSpec `json:"spec"`

	// status is what the operator has seen. It is written by the operator only.
	//
	// +optional
	Status CronJobStatus `json:"status,omitzero"`
}

// CronJobList is a list of CronJobs.
//
// +kubebuilder:object:root=true
type CronJobList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	//
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the CronJobs.
	Items []CronJob `json:"items"`
}
