-- Why a run has failed, in the words of its cause, such as the model's provider. Only operators read it.
alter table agent_runs add column error_details text;
