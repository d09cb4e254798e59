package v1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CronJobSpec is the desired state.
type CronJobSpec struct {
	// schedule is when Jobs are due, in the time zone spec.timeZone.
	//
	// Required, at most 256 characters, in one of three forms:
	//
	//   - Five fields separated by spaces: minute (0-59), hour (0-23), day of the month (1-31), month (1-12 or jan-dec)
	//     and day of the week (0-6 or sun-sat, 0 is Sunday). Each is *, a number or name, a range 8-17, a step */15 or
	//     8-17/3, or a comma-separated list of these. If both the day of the month and the day of the week are
	//     restricted, days that match either count.
	//   - A name: @hourly, @daily or @midnight, @weekly (Sunday 00:00), @monthly, @yearly or @annually.
	//   - @every and a duration of whole hours, minutes and seconds of at least one second, such as "@every 1h30m". It
	//     counts from status.scheduledSince, whatever the time of day.
	//
	// When the clocks change and the schedule names hours, a skipped time runs at the end of the gap, and a time that
	// occurs twice runs the first time. If the hour is *, a Job runs once per elapsed hour: a skipped time does not run,
	// and a time that occurs twice runs twice. A well-formed schedule that never matches a date, or a range that ends
	// before it begins, is reported in the condition Degraded. Changing it takes effect from then on: earlier times do not
	// run, and active Jobs continue.
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

	// timeZone is the time zone of the schedule, a name of the IANA time zone database such as Europe/Berlin.
	//
	// Optional, at most 64 characters; UTC if unset. "Local" is rejected because it differs between machines. An unknown
	// name is reported in the condition Degraded, reason UnknownTimeZone. Changing it takes effect from then on: earlier
	// times do not run, and active Jobs continue.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$')`,message=`must be the name of a zone in the IANA time zone database, such as Europe/Berlin or Etc/UTC, without spaces`
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^(?i:local|localtime)$')`,message=`must name a zone that is the same on every machine, such as Europe/Berlin or Etc/UTC`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Time zone",order=2,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	TimeZone *string `json:"timeZone,omitempty"`

	// startingDeadlineSeconds is how many seconds after its scheduled time a Job may still be created: after an outage of
	// the operator, a rejected request, or a wait for another Job (concurrencyPolicy Forbid).
	//
	// Optional, 0 to 3155760000 (100 years); no deadline if unset. If several times were missed, only the latest runs. The
	// event MissedSchedule reports the others. With a deadline of a few seconds, a busy cluster is enough to miss a time.
	// Changing it decides again whether the latest missed time may run; skipped times stay skipped, and active Jobs
	// continue.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3155760000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Starting deadline in seconds",order=5,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// concurrencyPolicy is what happens when a Job is due while an earlier Job of the same CronJob is still active.
	//
	// Optional; Allow if unset. Allow: both run. Forbid: the run waits until the earlier Job has finished, and is skipped
	// when the next time is due or startingDeadlineSeconds have passed. Replace: the earlier Job is deleted and the new
	// one is created at once, while pods of the earlier one may still be stopping. Changing it takes effect at the next
	// scheduled time; Jobs that are already active together continue.
	//
	// +optional
	// +kubebuilder:default=Allow
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Concurrency policy",order=4,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Allow","urn:alm:descriptor:com.tectonic.ui:select:Forbid","urn:alm:descriptor:com.tectonic.ui:select:Replace"}
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// suspend stops the creation of Jobs.
	//
	// Optional; false if unset. Times that pass while it is true never run. Changing it to true lets active Jobs continue;
	// changing it to false resumes the schedule from then on.
	//
	// +optional
	// +kubebuilder:default=false
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Suspend",order=6,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Suspend *bool `json:"suspend,omitempty"`

	// jobTemplate is the template of every Job: metadata.labels, metadata.annotations and spec, which "kubectl explain
	// job.spec" describes.
	//
	// Required. It has the fields that Kubernetes had when the operator was released; an older cluster drops those that it
	// does not know. restartPolicy must be OnFailure or Never. Name, namespace and selector of Jobs are generated, so they
	// must not be set. If the cluster rejects a Job, for example because of a quota or Pod Security, the condition
	// Degraded contains the error. Changing it takes effect for the next Job; active Jobs keep their template.
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
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Job template",order=3,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`

	// successfulJobsHistoryLimit is how many completed Jobs are kept, the latest ones, so that their logs can be read.
	//
	// Optional, 0 or more; 3 if unset. Changing it to less deletes the oldest completed Jobs with their pods.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Completed Jobs to keep",order=7,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// failedJobsHistoryLimit is how many failed Jobs are kept, the latest ones, so that their logs can be read.
	//
	// Optional, 0 or more; 1 if unset. Changing it to less deletes the oldest failed Jobs with their pods.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Failed Jobs to keep",order=8,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// ConcurrencyPolicy is what happens when a Job is due while an earlier one is still active.
//
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

const (
	// AllowConcurrent creates the Job while the earlier one is active.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent waits until the earlier Job has finished.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the earlier Job and creates the next one.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CronJobStatus is the state that the operator has observed.
type CronJobStatus struct {
	// observedGeneration is the metadata.generation that this status refers to. If it is lower than
	// metadata.generation, the operator has not observed the latest change of the spec yet.
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

	// lastScheduleTime is the latest scheduled time for which a Job was created. It only moves forward.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last scheduled",order=2,xDescriptors={"urn:alm:descriptor:text"}
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// lastSuccessfulTime is when a Job last completed.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last successful",order=3,xDescriptors={"urn:alm:descriptor:text"}
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`

	// lastFailedTime is when a Job last failed. If it is later than lastSuccessfulTime, the condition Degraded has the
	// reason LastRunFailed.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last failed",order=4,xDescriptors={"urn:alm:descriptor:text"}
	LastFailedTime *metav1.Time `json:"lastFailedTime,omitempty"`

	// nextScheduleTime is when the next Job is due. It is unset while the CronJob is suspended, if no Job will ever be
	// due, and once it has passed, or the spec has changed, until the Jobs have been read again.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Next scheduled",order=1,xDescriptors={"urn:alm:descriptor:text"}
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// lastMissedTime is the latest scheduled time that was skipped.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last missed",order=6,xDescriptors={"urn:alm:descriptor:text"}
	LastMissedTime *metav1.Time `json:"lastMissedTime,omitempty"`

	// scheduledSince is the time after which scheduled times run: when the CronJob was created, when its schedule or
	// timeZone last changed, or when it was last resumed. It is unset while the CronJob is suspended.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Scheduled since",order=8,xDescriptors={"urn:alm:descriptor:text"}
	ScheduledSince *metav1.Time `json:"scheduledSince,omitempty"`

	// observedSchedule is the schedule that scheduledSince refers to.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed schedule",order=9,xDescriptors={"urn:alm:descriptor:text"}
	ObservedSchedule string `json:"observedSchedule,omitempty"`

	// observedTimeZone is the timeZone that scheduledSince refers to; unset if the spec has none.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed time zone",order=10,xDescriptors={"urn:alm:descriptor:text"}
	ObservedTimeZone string `json:"observedTimeZone,omitempty"`

	// conditions report the state of the CronJob: Available (the next Job will be created when it is due), Progressing
	// (Jobs are active, or due and waiting) and Degraded (someone has to act). All three are always present.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",order=12,xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CronJob creates a Job at each time of a schedule, in a time zone of your choice.
// It is the example of the Kubebuilder book; unlike the CronJobs of Kubernetes it reports problems in conditions.
//
// +kubebuilder:object:root=true
// +operator-sdk:csv:customresourcedefinitions:displayName="CronJob",order=3,resources={{Job,v1,""},{Pod,v1,""},{Event,v1,""},{CronJob,v1,""}}
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=cronjobs,singular=cronjob,categories={all,memcached-operator}
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="the name must have at most 52 characters: Jobs are named after it and their time, in at most 63",fieldPath=".metadata"
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=".spec.schedule",description="When Jobs are due"
// +kubebuilder:printcolumn:name="TimeZone",type=string,JSONPath=".spec.timeZone",description="The time zone of the schedule; UTC when it is empty"
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=".spec.suspend",description="Whether the creation of Jobs is suspended"
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=".status.activeJobs",description="Jobs that have not finished"
// +kubebuilder:printcolumn:name="Last Schedule",type=date,JSONPath=".status.lastScheduleTime",description="Latest scheduled time for which a Job was created"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type CronJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name may have up to 52 characters.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec CronJobSpec `json:"spec"`

	// status is the state that the operator has observed. Only the operator writes it.
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
