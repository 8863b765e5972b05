"""The recipes' questions in Chinese; in English they are their files' own. Notes stay as they are there."""

from __future__ import annotations

from compare.recipes import Recipe
from dashboards.words import Language

CHINESE: dict[str, str] = {
    "accounting_by_hour": "逐小时看，每条记录都有着落吗？滞后多少？",
    "alert_history": "哪些告警触发过，持续多久，证据是什么？",
    "dead_letters": "死信中有什么：哪条记录、原因、开头的字节？",
    "detection_power": "按目前流量，告警在若干小时内能发现多小的回归率上升？",
    "diverged_with_deploy": "哪些提示词在部署之前一致、之后不同？",
    "divergence_position": "各模型的回答在多少个词元之后分叉？",
    "endpoint_failures": "哪些端点失败，如何失败，从何时开始？",
    "experiment_versions": "实验用过哪些设置，最后何时生效？",
    "fault_excess": "可以发布吗：仅候选方出错比仅参考方出错多多少？",
    "faults_by_route": "按类别和路由，哪些故障只出现在候选方，是否超出噪声基底？",
    "findings_by_code": "检测器在哪一侧具体发现了什么，例子在哪里？",
    "finish_reasons": "候选方结束回答的方式与参考方不同吗，例如达到上限？",
    "hourly_rates": "回归率、故障和 KL 逐小时如何变化？",
    "languages_that_degrade": "候选方在哪些语言上回归最多？",
    "latency_by_day": "候选方逐日比参考方更快还是更慢？",
    "length_outliers": "哪些回答比参考方的长得多或短得多？",
    "near_ties": "分叉的回答中有多少处于近乎平局，多少是真正分叉？",
    "noise_floor": "逐个指标看，候选方与参考方的差距是否大于端点与自身的差距？",
    "not_compared": "多大比例的流量未被比较，为什么？",
    "p99_kl_by_model": "按模型和日期，候选方离参考方多远：强制 KL 的第 99 百分位？",
    "probable_causes": "回归可能由什么引起？",
    "records_by_minute": "逐分钟看，记录的结果如何，滞后多少？",
    "refusal_flips": "在哪些路由上一侧拒绝而另一侧回答？",
    "regressions_by_slice": "哪些租户、路由、类型、模型或提示词长度回归最多？",
    "repeated_prompts": "哪些提示词出现多次且判定不同？",
    "replay_cost": "回放成本：按端点和日期的调用数、词元数和秒数？",
    "schema_regressions_by_path": "按 JSON 路径，候选方在哪里违反模式而参考方没有？",
    "served_before_after": "某一时刻前后生产环境服务的是什么：模型、引擎、量化、权重？",
    "severity_histogram": "回答对的严重度如何分布？",
    "token_roles": "候选方在回答的哪些部分不同：JSON 语法、键、值、数字、文字？",
    "tool_call_disagreements": "工具调用在哪里不同：工具不同还是参数不同？",
    "unscored_reasons": "缺少哪些指标，占多大比例的回答对，为什么？",
    "verdicts_by_day": "每天的回答对结果如何：哪些判定，各占多少？",
    "worst_pairs": "应该先看哪些回答对？",
    "worst_slices": "长时间范围内，哪些路由、租户、语言、模型或故障类别回归最多？",
}


def question_of(recipe: Recipe, language: Language) -> str:
    """What the recipe answers, in English where it is not said in Chinese yet."""
    return CHINESE.get(recipe.name, recipe.question) if language == "zh" else recipe.question
